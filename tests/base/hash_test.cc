#include "base/hash.h"

#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/checkpoint_files.h"

namespace locket {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string sha256_hex(std::string_view text) { return to_hex(sha256(bytes_of(text))); }

TEST(HashTest, Sha256GivesTheKnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_hex(test_support::counting_bytes(1000)),
            "4e4c294b331f7a2099a379bec34b9f9fc03dc46ab465d998f4d683da53487e6d");
}

TEST(HashTest, Sha256InPiecesIsSha256OfTheWhole) {
  const std::string text = test_support::counting_bytes(200);
  const Sha256Digest whole = sha256(bytes_of(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(bytes_of(std::string_view(text).substr(0, cut)));
    Sha256 moved = std::move(hash);
    moved.update(bytes_of(std::string_view(text).substr(cut)));
    EXPECT_EQ(moved.finish(), whole) << cut;
  }
}

TEST(HashTest, Xxh3GivesTheKnownAnswers) {
  EXPECT_EQ(xxh3_128(bytes_of("")),
            (Checksum128{.low = 0x6001c324468d497f, .high = 0x99aa06d3014798d8}));
  EXPECT_EQ(xxh3_128(bytes_of("abc")),
            (Checksum128{.low = 0x78af5f94892f3950, .high = 0x06b05ab6733a6185}));
  EXPECT_EQ(xxh3_128(bytes_of(test_support::counting_bytes(1000))),
            (Checksum128{.low = 0x33ef703fb2b20ed1, .high = 0x18bf41bc8229e277}));
}

TEST(HashTest, AnyFlippedBitChangesTheChecksum) {
  std::string text = test_support::counting_bytes(300);
  const Checksum128 before = xxh3_128(bytes_of(text));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const char mask = static_cast<char>(1U << bit % 8);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    EXPECT_NE(xxh3_128(bytes_of(text)), before) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

TEST(HashTest, HexadecimalHasTwoLowerCaseDigitsAByte) {
  EXPECT_EQ(to_hex(bytes_of(std::string_view("\x00\x0f\xa5\xff", 4))), "000fa5ff");
  EXPECT_EQ(to_hex({}), "");
}

}  // namespace
}  // namespace locket
