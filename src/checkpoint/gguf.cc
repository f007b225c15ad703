#include "checkpoint/gguf.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/gguf_llama.h"

namespace locket::checkpoint {
namespace {

using internal::GgufTensor;

// Read and decoded at once, if the rows need no other order.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

bool stays_bf16(const GgufTensor& tensor) { return tensor.type == GgufType::kBf16; }

TensorEntry entry_of(const GgufTensor& tensor) {
  const auto columns = static_cast<std::int64_t>(tensor.columns);
  const auto rows = static_cast<std::int64_t>(tensor.rows);
  TensorEntry entry = {.name = internal::released_name(tensor.name),
                       .dtype = stays_bf16(tensor) ? numerics::Dtype::kBf16 : numerics::Dtype::kF32,
                       .shape = {columns},
                       .offset = tensor.offset,
                       .byte_count = tensor.rows * tensor.columns * (stays_bf16(tensor) ? 2 : 4)};
  if (tensor.rank > 1) entry.shape = {rows, columns};
  return entry;
}

// Where in the file the row lies that the release has at `row` of a head of `rows`.
std::uint64_t paired_row(std::uint64_t row, std::uint64_t rows) {
  const std::uint64_t half = rows / 2;
  return row < half ? 2 * row : 2 * (row - half) + 1;
}

}  // namespace

bool is_gguf_file(const std::filesystem::path& path) {
  std::error_code error;
  return path.extension() == ".gguf" && std::filesystem::is_regular_file(path, error);
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  LOCKET_TRY(File opened, File::open_for_reading(path));
  GgufFile file(std::move(opened));
  LOCKET_TRY(file.header_, internal::read_gguf_header(file.file_));
  file.header_digest_ = file.header_.digest;
  LOCKET_TRY(internal::GgufLlama llama, internal::read_gguf_llama(file.header_, path.string()));
  file.config_ = std::move(llama.config);
  std::set<std::string> names;
  for (const GgufTensor& tensor : file.header_.tensors) {
    TensorEntry entry = entry_of(tensor);
    if (!names.insert(entry.name).second) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("{}: tensor {} occurs twice", path.string(),
                              internal::printable(tensor.name)));
    }
    const bool is_paired = internal::has_paired_rows(tensor.name);
    if (is_paired && (llama.head_dim % 2 != 0 || tensor.rows % llama.head_dim != 0)) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("{}: tensor {} has {} rows (a multiple of {}, the even size of a "
                              "head, is needed)",
                              path.string(), internal::printable(tensor.name), tensor.rows,
                              llama.head_dim));
    }
    file.head_rows_.push_back(is_paired ? llama.head_dim : 0);
    file.tensors_.push_back(std::move(entry));
  }
  return file;
}

Status GgufFile::read_rows(std::size_t tensor, std::uint64_t first, std::uint64_t count,
                           std::vector<std::byte>& stored) const {
  const GgufTensor& source = header_.tensors[tensor];
  stored.resize(static_cast<std::size_t>(count * source.row_bytes()));
  const Status status = file_.read_at(source.offset + first * source.row_bytes(), stored);
  if (status) return {};
  return internal::with_prefix(fmt::format("tensor {}: ", internal::printable(source.name)),
                               status.error());
}

template <class Visit>
Status GgufFile::visit_rows(std::size_t tensor, std::uint64_t first, std::uint64_t last,
                            const Visit& visit) const {
  const GgufTensor& source = header_.tensors[tensor];
  const std::uint64_t head_rows = head_rows_[tensor];
  const std::uint64_t unit =
      head_rows > 0 ? head_rows : std::max<std::uint64_t>(1, kPieceBytes / source.row_bytes());
  std::vector<std::byte> stored;
  for (std::uint64_t begin = first / unit * unit; begin < last; begin += unit) {
    const std::uint64_t count = std::min(unit, source.rows - begin);
    LOCKET_TRY_STATUS(read_rows(tensor, begin, count, stored));
    const std::uint64_t end = std::min(begin + count, last);
    for (std::uint64_t row = std::max(begin, first); row < end; ++row) {
      const std::uint64_t place = head_rows > 0 ? paired_row(row - begin, head_rows) : row - begin;
      visit(row, std::span(stored).subspan(static_cast<std::size_t>(place * source.row_bytes()),
                                           static_cast<std::size_t>(source.row_bytes())));
    }
  }
  return {};
}

std::size_t GgufFile::number_of(const TensorEntry& entry) const {
  const auto number = static_cast<std::size_t>(&entry - tensors_.data());
  LOCKET_CHECK(number < tensors_.size());
  return number;
}

Status GgufFile::read_range(const TensorEntry& entry, std::uint64_t first_byte,
                            std::span<std::byte> target) const {
  const std::size_t number = number_of(entry);
  LOCKET_CHECK(first_byte <= entry.byte_count && target.size() <= entry.byte_count - first_byte);
  if (target.empty()) return {};
  const GgufTensor& source = header_.tensors[number];
  const std::uint64_t row_bytes = entry.byte_count / source.rows;  // of decoded values
  const std::uint64_t last_row = (first_byte + target.size() + row_bytes - 1) / row_bytes;
  std::vector<std::byte> values(static_cast<std::size_t>(row_bytes));
  std::size_t done = 0;
  const auto copy_row = [&](std::uint64_t row, std::span<const std::byte> stored) {
    if (stays_bf16(source)) {
      std::ranges::copy(stored, values.begin());
    } else {
      // From std::allocator, so aligned for float.
      decode_gguf(
          source.type, stored,
          std::span(reinterpret_cast<float*>(values.data()), values.size() / sizeof(float)));
    }
    const auto from = static_cast<std::size_t>(first_byte + done - row * row_bytes);
    const std::size_t copied = std::min(target.size() - done, values.size() - from);
    std::ranges::copy(std::span(values).subspan(from, copied), target.subspan(done).begin());
    done += copied;
  };
  return visit_rows(number, first_byte / row_bytes, last_row, copy_row);
}

unsigned GgufFile::code_bits(const TensorEntry& entry) const {
  return gguf_code_bits(header_.tensors[number_of(entry)].type);
}

Status GgufFile::read_codes(const TensorEntry& entry, std::span<std::byte> codes,
                            std::span<float> scales) const {
  const std::size_t number = number_of(entry);
  const GgufTensor& source = header_.tensors[number];
  const auto rows = static_cast<std::size_t>(source.rows);
  const std::size_t row_codes = codes.size() / rows;
  const std::size_t row_scales = scales.size() / rows;
  return visit_rows(
      number, 0, source.rows, [&](std::uint64_t at, std::span<const std::byte> stored) {
        const auto row = static_cast<std::size_t>(at);
        decode_gguf_codes(source.type, stored, codes.subspan(row * row_codes, row_codes),
                          scales.subspan(row * row_scales, row_scales));
      });
}

bool GgufFile::has(std::string_view key) const { return header_.values.contains(std::string(key)); }

template <class T>
Result<const T*> GgufFile::value(std::string_view key, std::string_view needed) const {
  const auto found = header_.values.find(std::string(key));
  const auto* const content =
      found == header_.values.end() ? nullptr : std::get_if<T>(&found->second);
  if (content != nullptr) return content;
  return fail(
      ErrorCode::kBadCheckpoint,
      fmt::format("{}: key {} {} ({} is needed)", path().string(), key,
                  found == header_.values.end() ? "is missing" : "is of another type", needed));
}

Result<std::string> GgufFile::string(std::string_view key) const {
  LOCKET_TRY(const auto* content, value<std::string>(key, "a string"));
  return *content;
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  LOCKET_TRY(const auto* content, value<bool>(key, "true or false"));
  return *content;
}

Result<std::span<const std::string>> GgufFile::strings(std::string_view key) const {
  LOCKET_TRY(const auto* content, value<internal::GgufStrings>(key, "a list of strings"));
  return std::span<const std::string>(*content);
}

Result<std::span<const std::int64_t>> GgufFile::integers(std::string_view key) const {
  LOCKET_TRY(const auto* content, value<internal::GgufIntegers>(key, "a list of integers"));
  return std::span<const std::int64_t>(*content);
}

}  // namespace locket::checkpoint
