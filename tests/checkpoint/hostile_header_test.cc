// Files that are wrong on purpose: each must be refused with words that say why.
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

namespace fs = std::filesystem;
using test_support::counting_bytes;
using test_support::frame_safetensors;
using test_support::safetensors_text;
using test_support::TempFolder;

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>(length >> (8 * byte)));
  return bytes;
}

struct HeaderCase {
  std::string header;
  std::size_t data_bytes;
  std::string reason;
};

// A header of one tensor "t".
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"t":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

// Two tensors of bytes, "a" and "b", at the given offsets.
std::string two(std::string_view first, std::string_view second, int first_size, int second_size) {
  return fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":{}}},)"
                     R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":{}}}}})",
                     first_size, first, second_size, second);
}

void expect_refused(const TempFolder& folder, const HeaderCase& wrong) {
  SCOPED_TRACE(wrong.header.substr(0, 200));
  const fs::path path =
      folder.write("wrong", frame_safetensors(wrong.header, counting_bytes(wrong.data_bytes)));
  expect_failure(SafetensorsFile::open(path), ErrorCode::kBadCheckpoint,
                 {path.string() + ": ", wrong.reason});
}

TEST(HostileHeaderTest, FilesTooShortForALengthAreRefused) {
  const TempFolder folder;
  for (const std::size_t size : {0, 1, 7}) {
    expect_failure(SafetensorsFile::open(folder.write("short", counting_bytes(size))),
                   ErrorCode::kBadCheckpoint, {fmt::format("has {} bytes", size)});
  }
}

TEST(HostileHeaderTest, ImpossibleLengthsAreRefusedWithoutReading) {
  const TempFolder folder;
  constexpr std::uint64_t kOne = 1;
  for (const std::uint64_t length : {std::uint64_t{0}, kOne, std::uint64_t{3}, kOne << 31,
                                     kOne << 32, kOne << 63, UINT64_MAX, UINT64_MAX - 7}) {
    const fs::path path = folder.write("length", length_bytes(length) + "{}");
    expect_failure(SafetensorsFile::open(path), ErrorCode::kBadCheckpoint,
                   {path.string(), fmt::format("header length {} is impossible", length)});
  }
}

// The length is true, and the two thousand million bytes are not worth reading.
TEST(HostileHeaderTest, ALongHeaderOfNothingIsRefusedAtItsFirstBytes) {
  const TempFolder folder;
  constexpr std::uint64_t kLength = std::uint64_t{1} << 31;
  const fs::path path = folder.write("sparse", length_bytes(kLength));
  fs::resize_file(path, 8 + kLength);
  expect_failure(SafetensorsFile::open(path), ErrorCode::kBadCheckpoint, {"does not start with {"});
  const fs::path opened = folder.write("brace", length_bytes(kLength) + "{");
  fs::resize_file(opened, 8 + kLength);
  expect_failure(SafetensorsFile::open(opened), ErrorCode::kBadCheckpoint,
                 {"not valid JSON at byte 10"});
}

TEST(HostileHeaderTest, BrokenJsonIsRefused) {
  const TempFolder folder;
  const std::vector<HeaderCase> cases = {
      {"[]", 0, "does not start with {"},
      {" {}", 0, "does not start with {"},
      {"\"t\"", 0, "does not start with {"},
      {"{}{}", 0, "not valid JSON at byte 11"},
      {std::string("{}\0\0", 4), 0, "not valid JSON at byte 11"},
      {std::string("{}\0", 3), 0, "not valid JSON at byte 11"},
      {"{\"t\":", 0, "not valid JSON"},
      {"{\"t\xff\":{}}", 0, "not valid JSON"},
      {"{t:1}", 0, "not valid JSON"},
      {one("\"U8\"", "[NaN]", "[0,1]"), 1, "not valid JSON"},
      {one("\"U8\"", "[1e999]", "[0,1]"), 1, "not valid JSON"},
  };
  for (const HeaderCase& wrong : cases) expect_refused(folder, wrong);
}

TEST(HostileHeaderTest, DeepNestingIsRefusedAtItsFirstLevel) {
  const TempFolder folder;
  constexpr std::size_t kDepth = 5'000'000;
  const std::string lists(kDepth, '[');
  const std::vector<HeaderCase> cases = {
      {"{\"t\":" + lists, 0, "\"t\" is a list, not an object"},
      {"{\"t\":{\"shape\":[" + lists, 0, "shape of tensor t is or holds a list"},
      {"{\"t\":{\"dtype\":{\"a\":" + lists, 0, "dtype of tensor t is or holds an object"},
      {"{\"__metadata__\":{\"a\":" + lists, 0, "metadata \"a\" is a list, not a string"},
  };
  for (const HeaderCase& wrong : cases) expect_refused(folder, wrong);
}

TEST(HostileHeaderTest, WrongKindsOfValuesAreRefused) {
  const TempFolder folder;
  const std::vector<HeaderCase> cases = {
      {R"({"t":null})", 0, "\"t\" is null, not an object"},
      {R"({"t":7})", 0, "\"t\" is a number, not an object"},
      {R"({"t":"x"})", 0, "\"t\" is a string, not an object"},
      {R"({"__metadata__":[]})", 0, "\"__metadata__\" is a list"},
      {R"({"__metadata__":{"a":1}})", 0, "metadata \"a\" is a number, not a string"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "metadata \"a\" occurs twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ occurs twice"},
      {one("7", "[1]", "[0,1]"), 1, "dtype of tensor t is or holds a number"},
      {one("\"U8\"", "1", "[0,1]"), 1, "shape of tensor t is or holds a number"},
      {one("\"U8\"", "[-1]", "[0,1]"), 1, "shape of tensor t is or holds a negative number"},
      {one("\"U8\"", "[1.0]", "[0,1]"), 1, "shape of tensor t is or holds a fraction"},
      {one("\"U8\"", "[\"1\"]", "[0,1]"), 1, "shape of tensor t is or holds a string"},
      {one("\"U8\"", "[true]", "[0,1]"), 1, "shape of tensor t is or holds true or false"},
      {one("\"U8\"", "[9223372036854775808]", "[0,1]"), 1, "a number that is too large"},
      {one("\"U8\"", "[1]", "[0,18446744073709551616]"), 1, "holds a fraction"},
      {one("\"U8\"", "[1]", "[0]"), 1, "data_offsets of tensor t must be [begin, end]"},
      {one("\"U8\"", "[1]", "[]"), 1, "data_offsets of tensor t must be [begin, end]"},
      {one("\"U8\"", "[1]", "[0,1,2]"), 1, "data_offsets of tensor t has more than 2"},
      {one("\"U8\"", "[1]", "[1,0]"), 1, "begin <= end"},
      {one("\"U8\"", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "more than 16 extents"},
      {R"({"t":{}})", 0, "tensor t has no dtype"},
      {R"({"t":{"dtype":"U8","data_offsets":[0,0]}})", 0, "tensor t has no shape"},
      {R"({"t":{"dtype":"U8","shape":[0]}})", 0, "tensor t has no data_offsets"},
      {R"({"t":{"dtype":"U8","dtype":"U8"}})", 0, "tensor t has twice the key \"dtype\""},
      {R"({"t":{"dtype":"U8","stride":[1]}})", 0, "tensor t has an unknown key \"stride\""},
  };
  for (const HeaderCase& wrong : cases) expect_refused(folder, wrong);
}

TEST(HostileHeaderTest, SizesThatDoNotFitShapeAndDtypeAreRefused) {
  const TempFolder folder;
  const std::vector<HeaderCase> cases = {
      {one("\"BF16\"", "[3,4]", "[0,23]"), 23,
       "tensor t: BF16 [3, 4] needs 24 bytes, data_offsets give 23"},
      {one("\"F32\"", "[0]", "[0,4]"), 4, "needs 0 bytes, data_offsets give 4"},
      {one("\"F32\"", "[]", "[0,0]"), 0, "needs 4 bytes, data_offsets give 0"},
      {one("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "too many elements"},
      {one("\"F32\"", "[4611686018427387904]", "[0,0]"), 0, "too many elements"},
      {one("\"F4\"", "[2,3]", "[0,3]"), 3, "F4 [2, 3]: the last extent must be even"},
      {one("\"F4\"", "[]", "[0,1]"), 1, "the last extent must be even"},
  };
  for (const HeaderCase& wrong : cases) expect_refused(folder, wrong);
}

TEST(HostileHeaderTest, OverlapsHolesAndMissingDataAreRefused) {
  const TempFolder folder;
  const std::vector<HeaderCase> cases = {
      {two("[0,4]", "[3,7]", 4, 4), 7,
       "tensor b starts at byte 3 of the data, the one before it ends at 4: they overlap"},
      {two("[0,4]", "[0,4]", 4, 4), 4, "they overlap"},
      {two("[0,4]", "[2,2]", 4, 0), 4, "they overlap"},
      {two("[0,4]", "[5,9]", 4, 4), 9,
       "tensor b starts at byte 5 of the data, the one before it ends at 4: there is a hole"},
      {two("[1,5]", "[5,9]", 4, 4), 9, "there is a hole"},
      {two("[0,4]", "[4,8]", 4, 4), 7,
       "tensor b ends at byte 8 of the data, the file holds only 7"},
      {two("[0,4]", "[4,8]", 4, 4), 0,
       "tensor a ends at byte 4 of the data, the file holds only 0"},
      {two("[0,4]", "[4,8]", 4, 4), 9, "1 bytes of data after the last tensor"},
      {"{}", 3, "3 bytes of data after the last tensor"},
      {one("\"U8\"", "[1]", "[18446744073709551614,18446744073709551615]"), 1,
       "the file holds only 1"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "tensor t occurs twice"},
  };
  for (const HeaderCase& wrong : cases) expect_refused(folder, wrong);
}

TEST(HostileHeaderTest, AnLfsPointerIsCalledByItsName) {
  const TempFolder folder;
  const fs::path path =
      folder.write("model.safetensors",
                   "version https://git-lfs.github.com/spec/v1\n"
                   "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
                   "size 5163823320\n");
  expect_failure(SafetensorsFile::open(path), ErrorCode::kBadCheckpoint,
                 {path.string(), "Git LFS pointer"});
}

TEST(HostileHeaderTest, MessagesStayShortAndPrintable) {
  const TempFolder folder;
  const std::string name = "bell\\u0007" + std::string(1'000'000, 'n');
  const auto file =
      SafetensorsFile::open(folder.write("long", frame_safetensors("{\"" + name + "\":{}}", "")));
  expect_failure(file, ErrorCode::kBadCheckpoint, {"tensor bell?nnn", "has no dtype"});
  EXPECT_LT(file.error().message.size(), 500U);
}

// Whatever one changed byte or a cut does: a clear refusal, or a file whose entries are in range.
TEST(HostileHeaderTest, DamagedFilesAreRefusedOrStillSound) {
  const TempFolder folder;
  const std::string good = safetensors_text(
      {{"a", "F32", {2, 2}, counting_bytes(16)}, {"b", "F8_E4M3", {3}, "123"}}, {{"k", "v"}});
  const fs::path path = folder / "damaged";
  const auto expect_sound = [&](const std::string& content) {
    folder.write("damaged", content);
    const auto file = SafetensorsFile::open(path);
    if (!file) {
      EXPECT_FALSE(file.error().message.empty());
      return;
    }
    for (const TensorEntry& entry : file->tensors()) {
      EXPECT_LE(entry.offset + entry.byte_count, content.size());
      EXPECT_TRUE(file->read(entry));
    }
  };
  const std::size_t header_end = good.size() - 19;
  for (std::size_t place = 0; place < header_end; ++place) {
    for (const char byte : {'\0', '0', '9', '"', '{', ']', ',', ' ', '\x80', '\xff'}) {
      std::string damaged = good;
      damaged[place] = byte;
      expect_sound(damaged);
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    folder.write("damaged", good.substr(0, size));
    EXPECT_FALSE(SafetensorsFile::open(path)) << size;
  }
}

}  // namespace
}  // namespace locket::checkpoint
