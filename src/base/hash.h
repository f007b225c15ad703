// Digests: SHA-256 names content (keys, identities), XXH3-128 guards stored bytes against damage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace locket {

using Sha256Digest = std::array<std::byte, 32>;

// Incremental SHA-256. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::span<const std::byte> bytes);
  // REQUIRES: called once; the object is spent afterwards.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

// Keyed digest (RFC 2104).
Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);

// Fills `target` with random bytes that nobody can guess.
void random_bytes(std::span<std::byte> target);

struct Checksum128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Checksum128&, const Checksum128&) = default;
};

Checksum128 xxh3_128(std::span<const std::byte> bytes);

// Lower-case hexadecimal, two digits a byte.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace locket
