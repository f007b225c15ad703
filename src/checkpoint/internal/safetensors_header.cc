#include "checkpoint/internal/safetensors_header.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/file_stream.h"

namespace locket::checkpoint::internal {
namespace {

using nlohmann::json;
using numerics::Dtype;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kMaxRank = 16;
constexpr std::string_view kMetadataKey = "__metadata__";

std::optional<Dtype> dtype_of(std::string_view name) {
  for (int code = 0; code < static_cast<int>(Dtype::kCount); ++code) {
    const auto dtype = static_cast<Dtype>(code);
    if (numerics::dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// Receives the parser's events for {"__metadata__": {...}, "<name>": {dtype, shape,
// data_offsets}, ...}; returning false stops the parser, so nesting is never followed.
class HeaderReader {
 public:
  bool null() { return refuse_value("null"); }
  bool boolean(bool) { return refuse_value("true or false"); }
  bool number_integer(std::int64_t) { return refuse_value("a negative number"); }
  bool number_float(double, const std::string&) { return refuse_value("a fraction"); }
  bool binary(json::binary_t&) { return refuse_value("binary data"); }
  bool number_unsigned(std::uint64_t value);
  bool string(std::string& value);
  bool key(std::string& key);
  bool start_object(std::size_t);
  bool start_array(std::size_t);
  bool end_object();
  bool end_array();
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    return stop(fmt::format("not valid JSON at byte {}", position + kLengthBytes));
  }

  // Offsets of the entries are relative to the data part.
  SafetensorsHeader take_header() { return std::move(header_); }
  const Error& problem() const { return problem_; }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool stop(std::string message, ErrorCode code = ErrorCode::kBadCheckpoint) {
    problem_ = {code, std::move(message)};
    return false;
  }
  bool refuse_value(std::string_view found);
  bool begin_tensor();
  bool finish_tensor();

  Place place_ = Place::kStart;
  std::string name_;
  std::string field_;
  std::optional<std::string> dtype_;
  std::optional<tensor::Shape> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
  bool has_metadata_ = false;
  SafetensorsHeader header_;
  Error problem_;
};

bool HeaderReader::refuse_value(std::string_view found) {
  switch (place_) {
    case Place::kStart:
      return stop("the header is not a JSON object");
    case Place::kTop:
      return stop(fmt::format("\"{}\" is {}, not an object", printable(name_), found));
    case Place::kMetadata:
      return stop(fmt::format("metadata \"{}\" is {}, not a string", printable(field_), found));
    case Place::kTensor:
    case Place::kShape:
    case Place::kOffsets:
      return stop(fmt::format("{} of tensor {} is or holds {}", printable(field_), printable(name_),
                              found));
    case Place::kEnd:
      break;
  }
  return stop("text after the end of the header");
}

bool HeaderReader::number_unsigned(std::uint64_t value) {
  if (place_ == Place::kOffsets) {
    offsets_->push_back(value);
    if (offsets_->size() <= 2) return true;
    return stop(fmt::format("data_offsets of tensor {} has more than 2 entries", printable(name_)));
  }
  if (place_ != Place::kShape) return refuse_value("a number");
  if (value > INT64_MAX) return refuse_value("a number that is too large");
  shape_->push_back(static_cast<std::int64_t>(value));
  if (shape_->size() <= kMaxRank) return true;
  return stop(fmt::format("tensor {} has more than {} extents", printable(name_), kMaxRank));
}

bool HeaderReader::string(std::string& value) {
  if (place_ == Place::kTensor && field_ == "dtype") {
    dtype_ = std::move(value);
    return true;
  }
  if (place_ != Place::kMetadata) return refuse_value("a string");
  if (header_.metadata.emplace(field_, std::move(value)).second) return true;
  return stop(fmt::format("metadata \"{}\" occurs twice", printable(field_)));
}

bool HeaderReader::key(std::string& key) {
  if (place_ == Place::kTop) {
    name_ = std::move(key);
    return true;
  }
  field_ = std::move(key);
  if (place_ != Place::kTensor) return true;
  const bool is_known = field_ == "dtype" || field_ == "shape" || field_ == "data_offsets";
  const bool is_repeated = (field_ == "dtype" && dtype_) || (field_ == "shape" && shape_) ||
                           (field_ == "data_offsets" && offsets_);
  if (is_known && !is_repeated) return true;
  return stop(fmt::format("tensor {} has {} key \"{}\"", printable(name_),
                          is_known ? "twice the" : "an unknown", printable(field_)));
}

bool HeaderReader::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
    return true;
  }
  if (place_ != Place::kTop) return refuse_value("an object");
  if (name_ != kMetadataKey) return begin_tensor();
  if (has_metadata_) return stop("__metadata__ occurs twice");
  has_metadata_ = true;
  place_ = Place::kMetadata;
  return true;
}

bool HeaderReader::start_array(std::size_t) {
  if (place_ == Place::kTensor && field_ == "shape") {
    shape_.emplace();
    place_ = Place::kShape;
    return true;
  }
  if (place_ == Place::kTensor && field_ == "data_offsets") {
    offsets_.emplace();
    place_ = Place::kOffsets;
    return true;
  }
  return refuse_value("a list");
}

bool HeaderReader::end_array() {
  place_ = Place::kTensor;
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::kTensor && !finish_tensor()) return false;
  place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
  return true;
}

bool HeaderReader::begin_tensor() {
  dtype_.reset();
  shape_.reset();
  offsets_.reset();
  place_ = Place::kTensor;
  return true;
}

bool HeaderReader::finish_tensor() {
  const std::string_view missing = !dtype_     ? "dtype"
                                   : !shape_   ? "shape"
                                   : !offsets_ ? "data_offsets"
                                               : "";
  if (!missing.empty()) {
    return stop(fmt::format("tensor {} has no {}", printable(name_), missing));
  }
  const std::optional<Dtype> dtype = dtype_of(*dtype_);
  if (!dtype) {
    return stop(
        fmt::format("unsupported dtype {} in tensor {}", printable(*dtype_), printable(name_)),
        ErrorCode::kUnsupported);
  }
  if (offsets_->size() != 2 || offsets_->front() > offsets_->back()) {
    return stop(fmt::format("data_offsets of tensor {} must be [begin, end] with begin <= end",
                            printable(name_)));
  }
  header_.tensors.push_back({.name = std::move(name_),
                             .dtype = *dtype,
                             .shape = std::move(*shape_),
                             .offset = offsets_->front(),
                             .byte_count = offsets_->back() - offsets_->front()});
  return true;
}

// The length of the header text.
Result<std::uint64_t> read_length(const File& file) {
  const std::string path = file.path().string();
  std::array<char, 64> start = {};
  const std::size_t start_bytes =
      static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), start.size()));
  LOCKET_TRY_STATUS(file.read_at(0, std::as_writable_bytes(std::span(start).first(start_bytes))));
  if (is_lfs_pointer({start.data(), start_bytes})) return refuse_lfs_pointer(path);
  if (start_bytes < kLengthBytes) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{} has {} bytes; a safetensors file starts with 8 bytes of header "
                            "length",
                            path, start_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t byte = kLengthBytes; byte-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(start[byte]);
  }
  if (length < 2 || length > file.size() - kLengthBytes) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{}: header length {} is impossible in a file of {} bytes", path,
                            length, file.size()));
  }
  if (start[kLengthBytes] != '{') {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{}: the header does not start with {{", path));
  }
  return length;
}

Result<SafetensorsHeader> parse_header(const File& file, std::uint64_t length) {
  const std::string path = file.path().string();
  HeaderReader reader;
  FileStream buffer(file, kLengthBytes, length);
  try {
    std::istream stream(&buffer);
    if (json::sax_parse(stream, &reader)) return reader.take_header();
  } catch (const std::exception& error) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: {}", path, error.what()));
  }
  LOCKET_TRY_STATUS(buffer.status());
  return with_prefix(path + ": ", reader.problem());
}

// Size from shape and dtype, against the bytes that the offsets give.
Status check_size(const TensorEntry& entry) {
  const std::string shown =
      fmt::format("tensor {}: {} {}", printable(entry.name), numerics::dtype_name(entry.dtype),
                  tensor::to_string(entry.shape));
  const Result<std::int64_t> count = tensor::element_count(entry.shape);
  const std::uint64_t bits = numerics::bits_of(entry.dtype);
  if (!count || static_cast<std::uint64_t>(*count) > UINT64_MAX / bits) {
    return fail(ErrorCode::kBadCheckpoint, shown + " has too many elements");
  }
  if (bits < 8 && (entry.shape.empty() || entry.shape.back() % 2 != 0)) {
    return fail(ErrorCode::kBadCheckpoint,
                shown + ": the last extent must be even, two codes share a byte");
  }
  const std::uint64_t needed = static_cast<std::uint64_t>(*count) * bits / 8;
  if (needed == entry.byte_count) return {};
  return fail(ErrorCode::kBadCheckpoint, fmt::format("{} needs {} bytes, data_offsets give {}",
                                                     shown, needed, entry.byte_count));
}

// REQUIRES: sorted by offset. The entries must fill [0, data_bytes) exactly.
Status check_layout(const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (const TensorEntry& entry : tensors) {
    LOCKET_TRY_STATUS(check_size(entry));
    if (entry.byte_count > data_bytes || entry.offset > data_bytes - entry.byte_count) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("tensor {} ends at byte {} of the data, the file holds only {} (is "
                              "it complete?)",
                              printable(entry.name), entry.offset + entry.byte_count, data_bytes));
    }
    if (entry.offset != end) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("tensor {} starts at byte {} of the data, the one before it ends at "
                              "{}: {}",
                              printable(entry.name), entry.offset, end,
                              entry.offset < end ? "they overlap" : "there is a hole"));
    }
    end = entry.offset + entry.byte_count;
  }
  if (end == data_bytes) return {};
  return fail(
      ErrorCode::kBadCheckpoint,
      fmt::format("{} bytes of data after the last tensor belong to no tensor", data_bytes - end));
}

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(const File& file) {
  LOCKET_TRY(const std::uint64_t length, read_length(file));
  LOCKET_TRY(SafetensorsHeader header, parse_header(file, length));
  std::ranges::sort(header.tensors, [](const TensorEntry& left, const TensorEntry& right) {
    return std::pair(left.offset, left.byte_count) < std::pair(right.offset, right.byte_count);
  });
  const std::uint64_t data_start = kLengthBytes + length;
  if (const Status status = check_layout(header.tensors, file.size() - data_start); !status) {
    return with_prefix(file.path().string() + ": ", status.error());
  }
  for (TensorEntry& entry : header.tensors) entry.offset += data_start;
  return header;
}

}  // namespace locket::checkpoint::internal
