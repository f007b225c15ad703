#include "cache/internal/miss_codec.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "cache/internal/byte_codec.h"
#include "cache/internal/record_codec.h"

namespace locket::cache {
namespace {

constexpr double kMicros = 1e6;
constexpr double kMostSeconds = 1e12;
constexpr std::uint32_t kMostTokens = 1024;

void put_time(ByteWriter& writer, double seconds) {
  const double bounded = std::clamp(seconds, 0.0, kMostSeconds);
  writer.number(static_cast<std::int64_t>(std::llround(bounded * kMicros)));
}

double get_time(ByteReader& reader) {
  return static_cast<double>(std::max<std::int64_t>(0, reader.number<std::int64_t>())) / kMicros;
}

void put_label(ByteWriter& writer, const RootLabel& label) {
  writer.raw(label.root);
  writer.text(label.model);
  writer.raw(label.identity.model);
  writer.text(label.identity.numerics_mode);
  writer.number(label.identity.numerics_revision);
  writer.text(label.identity.tenant);
}

RootLabel get_label(ByteReader& reader) {
  RootLabel label;
  reader.raw(label.root);
  label.model = reader.text();
  reader.raw(label.identity.model);
  label.identity.numerics_mode = reader.text();
  label.identity.numerics_revision = reader.number<std::uint32_t>();
  label.identity.tenant = reader.text();
  return label;
}

void put_tokens(ByteWriter& writer, std::span<const std::int32_t> tokens) {
  const auto count = std::min(tokens.size(), std::size_t{kMostTokens});
  writer.number(static_cast<std::uint32_t>(count));
  for (const std::int32_t token : tokens.first(count)) writer.number(token);
}

// Fewer than there should be if the bytes do not hold them; the reader knows.
std::vector<std::int32_t> get_tokens(ByteReader& reader) {
  const auto count = std::min(reader.number<std::uint32_t>(), kMostTokens);
  std::vector<std::int32_t> tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(reader.number<std::int32_t>());
  return tokens;
}

}  // namespace

std::string miss_key(std::uint64_t number) {
  std::string digits;
  for (int shift = 56; shift >= 0; shift -= 8) digits.push_back(static_cast<char>(number >> shift));
  return record_key(RecordSpace::kMiss, digits);
}

std::optional<std::uint64_t> number_of_miss(std::string_view key) {
  if (key.size() != 1 + sizeof(std::uint64_t) ||
      key.front() != static_cast<char>(RecordSpace::kMiss)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  for (const char byte : key.substr(1)) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

std::string encode_miss(std::string_view key, const RecordedMiss& miss) {
  const MissExplanation& explanation = miss.explanation;
  ByteWriter writer;
  put_label(writer, miss.root);
  writer.number(miss.prompt_tokens);
  put_time(writer, miss.seconds);
  writer.number(static_cast<std::uint8_t>(explanation.reason));
  writer.number(explanation.hit_tokens);
  put_tokens(writer, explanation.shared_tokens);
  put_tokens(writer, explanation.wanted_tokens);
  put_tokens(writer, explanation.stored_tokens);
  writer.number(static_cast<std::uint8_t>(explanation.other_root.has_value() ? 1 : 0));
  put_label(writer, explanation.other_root.value_or(RootLabel{}));
  writer.number(static_cast<std::uint32_t>(explanation.snapshots.size()));
  for (const std::int64_t position : explanation.snapshots) writer.number(position);
  writer.raw(explanation.ended_in);
  put_time(writer, explanation.seconds);
  return seal_record(key, writer.take());
}

std::optional<RecordedMiss> decode_miss(std::string_view key, std::string_view value) {
  const auto content = open_record(key, value);
  if (!content || !number_of_miss(key)) return std::nullopt;
  ByteReader reader(*content);
  RecordedMiss miss;
  miss.root = get_label(reader);
  miss.prompt_tokens = reader.number<std::int64_t>();
  miss.seconds = get_time(reader);
  const auto reason = reader.number<std::uint8_t>();
  if (reason >= static_cast<std::uint8_t>(MissReason::kCount)) return std::nullopt;
  MissExplanation& explanation = miss.explanation;
  explanation.reason = static_cast<MissReason>(reason);
  explanation.hit_tokens = reader.number<std::int64_t>();
  explanation.shared_tokens = get_tokens(reader);
  explanation.wanted_tokens = get_tokens(reader);
  explanation.stored_tokens = get_tokens(reader);
  const bool has_other_root = reader.number<std::uint8_t>() != 0;
  RootLabel other = get_label(reader);
  if (has_other_root) explanation.other_root = std::move(other);
  const auto snapshots = std::min(reader.number<std::uint32_t>(), kMostTokens);
  for (std::uint32_t i = 0; i < snapshots; ++i) {
    explanation.snapshots.push_back(reader.number<std::int64_t>());
  }
  if (!explanation.snapshots.empty()) explanation.nearest_snapshot = explanation.snapshots.front();
  reader.raw(explanation.ended_in);
  explanation.seconds = get_time(reader);
  if (!reader.is_complete() || miss.prompt_tokens < 0 || explanation.hit_tokens < 0) {
    return std::nullopt;
  }
  return miss;
}

}  // namespace locket::cache
