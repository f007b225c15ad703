#include "checkpoint/internal/gguf_header.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/gguf_stream.h"

namespace locket::checkpoint::internal {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kMostDimensions = 4;
constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::int64_t kMostAlignment = std::int64_t{1} << 24;
// The least that an entry takes: a key of no bytes, a type and a byte; a tensor of one dimension.
constexpr std::uint64_t kLeastValueBytes = 8 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

// As they stand in the file.
enum class ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kList,
  kU64,
  kI64,
  kF64
};

class HeaderReader {
 public:
  explicit HeaderReader(const File& file) : file_(file), stream_(file) {}

  Result<GgufHeader> read() {
    LOCKET_TRY_STATUS(read_start());
    for (std::uint64_t i = 0; i < value_count_; ++i) LOCKET_TRY_STATUS(read_entry());
    for (std::uint64_t i = 0; i < tensor_count_; ++i) LOCKET_TRY_STATUS(read_tensor());
    LOCKET_TRY_STATUS(place_tensors());
    LOCKET_TRY(header_.digest, digest());
    return std::move(header_);
  }

 private:
  Status read_start() {
    LOCKET_TRY(const auto magic, stream_.number<std::uint32_t>());
    if (magic != kMagic) return stream_.bad("no GGUF file: it does not begin with \"GGUF\"");
    LOCKET_TRY(const auto version, stream_.number<std::uint32_t>());
    if (version != 2 && version != 3) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: GGUF version {} (2 or 3, little-endian, is needed)",
                              file_.path().string(), version));
    }
    LOCKET_TRY(tensor_count_, stream_.count("tensors", kLeastTensorBytes));
    LOCKET_TRY(value_count_, stream_.count("keys", kLeastValueBytes));
    return {};
  }

  Status read_entry() {
    LOCKET_TRY(std::string key, stream_.name());
    LOCKET_TRY(const auto type, stream_.number<std::uint32_t>());
    Result<GgufValue> value = read_value(static_cast<ValueType>(type));
    if (!value) {
      return fail(value.error().code,
                  fmt::format("{} (key {})", value.error().message, printable(key)));
    }
    const std::string shown = printable(key);
    if (!header_.values.emplace(std::move(key), std::move(*value)).second) {
      return stream_.bad(fmt::format("key {} occurs twice", shown));
    }
    return {};
  }

  template <class T>
  Result<std::int64_t> integer() {
    LOCKET_TRY(const T value, stream_.number<T>());
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      constexpr auto kMost = static_cast<T>(std::numeric_limits<std::int64_t>::max());
      if (value > kMost) return stream_.bad(fmt::format("{} (at most {} is needed)", value, kMost));
    }
    return static_cast<std::int64_t>(value);
  }

  Result<std::int64_t> integer_of(ValueType type) {
    switch (type) {
      case ValueType::kU8:
        return integer<std::uint8_t>();
      case ValueType::kI8:
        return integer<std::int8_t>();
      case ValueType::kU16:
        return integer<std::uint16_t>();
      case ValueType::kI16:
        return integer<std::int16_t>();
      case ValueType::kU32:
        return integer<std::uint32_t>();
      case ValueType::kI32:
        return integer<std::int32_t>();
      case ValueType::kU64:
        return integer<std::uint64_t>();
      case ValueType::kI64:
        return integer<std::int64_t>();
      case ValueType::kF32:
      case ValueType::kBool:
      case ValueType::kString:
      case ValueType::kList:
      case ValueType::kF64:
        break;
    }
    return unknown_type(type);
  }

  Result<double> number_of(ValueType type) {
    if (type == ValueType::kF64) return stream_.number<double>();
    LOCKET_TRY(const float value, stream_.number<float>());
    return static_cast<double>(value);
  }

  Result<bool> boolean() {
    LOCKET_TRY(const auto value, stream_.number<std::uint8_t>());
    if (value > 1) return stream_.bad(fmt::format("a truth value of {}", value));
    return value == 1;
  }

  Result<GgufValue> read_value(ValueType type) {
    if (type == ValueType::kString) return stream_.string();
    if (type == ValueType::kList) return read_list();
    if (type == ValueType::kBool) return boolean();
    if (is_fraction(type)) return number_of(type);
    return integer_of(type);
  }

  static bool is_fraction(ValueType type) {
    return type == ValueType::kF32 || type == ValueType::kF64;
  }

  // Of one element, at least.
  static std::uint64_t least_bytes(ValueType type) {
    switch (type) {
      case ValueType::kU8:
      case ValueType::kI8:
      case ValueType::kBool:
        return 1;
      case ValueType::kU16:
      case ValueType::kI16:
        return 2;
      case ValueType::kU32:
      case ValueType::kI32:
      case ValueType::kF32:
        return 4;
      case ValueType::kString:
      case ValueType::kList:
      case ValueType::kU64:
      case ValueType::kI64:
      case ValueType::kF64:
        return 8;
    }
    return 1;
  }

  Result<GgufValue> read_list() {
    LOCKET_TRY(const auto number, stream_.number<std::uint32_t>());
    const auto type = static_cast<ValueType>(number);
    if (type == ValueType::kList) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: at byte {}: a list of lists",
                                                       file_.path().string(), stream_.offset()));
    }
    LOCKET_TRY(const std::uint64_t count, stream_.count("elements", least_bytes(type)));
    if (type == ValueType::kString) {
      return collect<GgufStrings>(count, [&] { return stream_.string(); });
    }
    if (is_fraction(type)) return collect<GgufNumbers>(count, [&] { return number_of(type); });
    if (type == ValueType::kBool) return collect<GgufIntegers>(count, [&] { return boolean(); });
    return collect<GgufIntegers>(count, [&] { return integer_of(type); });
  }

  template <class List, class Read>
  static Result<GgufValue> collect(std::uint64_t count, const Read& read) {
    List list;
    list.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      LOCKET_TRY(auto element, read());
      list.push_back(static_cast<typename List::value_type>(std::move(element)));
    }
    return GgufValue(std::move(list));
  }

  tl::unexpected<Error> unknown_type(ValueType type) const {
    return stream_.bad(
        fmt::format("a value of type {} (0 to 12 are known)", static_cast<std::uint32_t>(type)));
  }

  Status read_tensor() {
    GgufTensor tensor;
    LOCKET_TRY(tensor.name, stream_.name());
    LOCKET_TRY(const auto rank, stream_.number<std::uint32_t>());
    if (rank == 0 || rank > kMostDimensions) {
      return bad_tensor(
          tensor, fmt::format("has {} dimensions (1 to {} are needed)", rank, kMostDimensions));
    }
    tensor.rank = rank;
    LOCKET_TRY(tensor.columns, stream_.number<std::uint64_t>());
    tensor.rows = 1;
    for (std::uint32_t i = 1; i < rank; ++i) {
      LOCKET_TRY(const auto extent, stream_.number<std::uint64_t>());
      if (extent == 0 || tensor.rows > file_.size() / extent) {
        return bad_tensor(tensor, fmt::format("has an extent of {}", extent));
      }
      tensor.rows *= extent;
    }
    LOCKET_TRY(const auto number, stream_.number<std::uint32_t>());
    LOCKET_TRY(tensor.offset, stream_.number<std::uint64_t>());
    const std::optional<GgufType> type = gguf_type(number);
    if (!type) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: tensor {} is {} (type {}); F32, F16, BF16, Q4_0, Q4_1, Q5_0, "
                              "Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are read",
                              file_.path().string(), printable(tensor.name), gguf_type_name(number),
                              number));
    }
    tensor.type = *type;
    LOCKET_TRY_STATUS(check_size(tensor));
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  // Afterwards its bytes are a number that the file could hold.
  Status check_size(const GgufTensor& tensor) const {
    const GgufBlock block = gguf_block(tensor.type);
    if (tensor.columns == 0 || tensor.columns % block.values != 0) {
      return bad_tensor(tensor, fmt::format("has rows of {} values (a multiple of {} is needed)",
                                            tensor.columns, block.values));
    }
    const std::uint64_t blocks = tensor.columns / block.values;
    if (blocks > file_.size() / block.bytes / tensor.rows) {
      return bad_tensor(tensor, fmt::format("has {} rows of {} values; the file has {} bytes",
                                            tensor.rows, tensor.columns, file_.size()));
    }
    return {};
  }

  tl::unexpected<Error> bad_tensor(const GgufTensor& tensor, std::string_view what) const {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: tensor {} {}", file_.path().string(),
                                                       printable(tensor.name), what));
  }

  Result<std::uint64_t> alignment() const {
    const auto found = header_.values.find("general.alignment");
    if (found == header_.values.end()) return kDefaultAlignment;
    const auto* value = std::get_if<std::int64_t>(&found->second);
    const bool fits =
        value != nullptr && *value > 0 && *value <= kMostAlignment && (*value & (*value - 1)) == 0;
    if (!fits) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("{}: general.alignment is no power of two up to {}",
                              file_.path().string(), kMostAlignment));
    }
    return static_cast<std::uint64_t>(*value);
  }

  // Offsets become those in the file; tensors must lie in it, apart from each other.
  Status place_tensors() {
    LOCKET_TRY(const std::uint64_t step, alignment());
    const std::uint64_t data = (stream_.offset() + step - 1) / step * step;
    std::ranges::stable_sort(header_.tensors, {}, &GgufTensor::offset);
    std::uint64_t end = data;
    for (GgufTensor& tensor : header_.tensors) {
      if (tensor.offset % step != 0) {
        return bad_tensor(
            tensor, fmt::format("lies at {} (a multiple of {} is needed)", tensor.offset, step));
      }
      if (data > file_.size() || tensor.offset > file_.size() - data ||
          tensor.byte_count() > file_.size() - data - tensor.offset) {
        return bad_tensor(tensor,
                          fmt::format("of {} bytes at {} after byte {} ends beyond the "
                                      "file, which has {} bytes",
                                      tensor.byte_count(), tensor.offset, data, file_.size()));
      }
      tensor.offset += data;
      if (tensor.offset < end) return bad_tensor(tensor, "overlaps the tensor before it");
      end = tensor.offset + tensor.byte_count();
    }
    return {};
  }

  Result<Sha256Digest> digest() const {
    Sha256 hash;
    std::vector<std::byte> piece(std::size_t{1} << 20);
    for (std::uint64_t at = 0; at < stream_.offset();) {
      const std::uint64_t bytes = std::min<std::uint64_t>(piece.size(), stream_.offset() - at);
      const std::span part(piece.data(), static_cast<std::size_t>(bytes));
      LOCKET_TRY_STATUS(file_.read_at(at, part));
      hash.update(part);
      at += bytes;
    }
    return hash.finish();
  }

  const File& file_;
  GgufStream stream_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t value_count_ = 0;
  GgufHeader header_;
};

}  // namespace

Result<GgufHeader> read_gguf_header(const File& file) { return HeaderReader(file).read(); }

}  // namespace locket::checkpoint::internal
