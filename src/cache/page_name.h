// Names of what is remembered. A page's name is a digest of every token up to its end, under a root
// that stands for everything else its bytes depend on: the model, the numerics and their revision,
// the format, and the tenant, keyed with a secret of the instance. So there is nothing to
// invalidate: what differs has another name. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"

namespace locket::cache {

using PageName = Sha256Digest;

// Version of the page and store formats; part of every name.
inline constexpr std::uint32_t kMemoryFormat = 1;

// What the bytes of a page depend on besides its tokens.
struct MemoryIdentity {
  Sha256Digest model = {};    // config, tokenizer, tensors
  std::string numerics_mode;  // "reference", "wide", ...
  std::uint32_t numerics_revision = 0;
  std::string tenant;  // whose memory it is; empty: the machine's owner
};

// HMAC-SHA-256 under `secret` over all fields, each with its tag and length, so that no two
// identities run together.
PageName root_name(std::span<const std::byte> secret, const MemoryIdentity& identity);

// SHA-256(parent, token count, token ids): the name of a page, or of a tail over the tokens that it
// has.
PageName page_name(const PageName& parent, std::span<const std::int32_t> tokens);

// The point in a prefix where pages begin or end: its name, and a second digest of all token ids up
// to there, which does not depend on names. Stored with a page and compared on every hit: names
// that collide cannot give another prefix's memory.
struct PrefixPoint {
  PageName name = {};
  Checksum128 ids = {};
  std::int64_t position = 0;
  // Bits of a digest that make the name, a multiple of 8; the others are zero. Fewer only where
  // tests want names to collide.
  std::int32_t name_bits = 256;

  friend bool operator==(const PrefixPoint&, const PrefixPoint&) = default;
};

PrefixPoint root_point(const PageName& root, std::int32_t name_bits = 256);
// The point after `tokens`.
PrefixPoint next_point(const PrefixPoint& point, std::span<const std::int32_t> tokens);

}  // namespace locket::cache
