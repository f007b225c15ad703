#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

using Json = nlohmann::json;
using JsonType = Json::value_t;

// Released files nest 6 deep.
constexpr std::size_t kMaxDepth = 64;
constexpr std::string_view kLfsPointerStart = "version https://git-lfs.github.com/spec/";

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kBadCheckpoint, std::move(message));
}

// What a message shows of a value: short, and valid UTF-8.
std::string shown(const Json& value) {
  constexpr std::size_t kMaxBytes = 60;
  std::string text = value.is_structured() ? value.type_name() : value.dump();
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + "...";
  return repair_utf8(text);
}

// The parser keeps its state on the heap, so this only bounds how much a few bytes of input can
// cost.
Status check_depth(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '"') in_string = !in_string;
    if (in_string && byte == '\\') ++at;
    if (in_string) continue;
    if (byte == '[' || byte == '{') ++depth;
    if ((byte == ']' || byte == '}') && depth > 0) --depth;
    if (depth > kMaxDepth) {
      return bad(fmt::format("nests deeper than {} at byte {}", kMaxDepth, at));
    }
  }
  return {};
}

Result<Json> parse_json(std::string_view text) {
  if (text.starts_with(kLfsPointerStart)) {
    return bad("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`");
  }
  LOCKET_TRY_STATUS(check_depth(text));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return bad(fmt::format("is not JSON: error at byte {} of {}", error.byte, text.size()));
  } catch (const Json::exception& error) {
    return bad(fmt::format("is not JSON that can be read: {}", repair_utf8(error.what())));
  }
}

// The member `key` of `object`, which must have the type. `where` names the object in messages.
Result<const Json*> member(const Json& object, std::string_view key, JsonType type,
                           std::string_view where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return bad(fmt::format("{} has no \"{}\"", where, key));
  const bool fits =
      found->type() == type || (type == JsonType::number_integer && found->is_number_integer());
  if (!fits) {
    return bad(fmt::format("{}: \"{}\" is {}, expected {}", where, key, shown(*found),
                           Json(type).type_name()));
  }
  return &*found;
}

Result<std::string> string_member(const Json& object, std::string_view key,
                                  std::string_view where) {
  LOCKET_TRY(const Json* value, member(object, key, JsonType::string, where));
  return value->get_ref<const std::string&>();
}

Result<bool> bool_member(const Json& object, std::string_view key, std::string_view where) {
  LOCKET_TRY(const Json* value, member(object, key, JsonType::boolean, where));
  return value->get<bool>();
}

Result<TokenId> token_id(const Json& value, std::string_view where) {
  constexpr auto kMax = std::numeric_limits<TokenId>::max();
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= kMax;
  if (!fits) {
    return bad(fmt::format("{}: the id is {}, expected a whole number from 0 to {}", where,
                           shown(value), kMax));
  }
  return value.get<TokenId>();
}

// Refuses any value but those in `known` for a member that may be missing.
Status require_absent_or(const Json& object, std::string_view key, const std::vector<Json>& known,
                         std::string_view where) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (std::find(known.begin(), known.end(), *found) != known.end()) return {};
  std::string values = "null";
  for (const Json& value : known) values += ", " + value.dump();
  return bad(fmt::format("{}: \"{}\" is {}, and only {} can be honoured", where, key, shown(*found),
                         values));
}

Result<std::vector<BaseEntry>> read_vocabulary(const Json& model) {
  LOCKET_TRY(const Json* vocabulary, member(model, "vocab", JsonType::object, "model"));
  std::vector<BaseEntry> entries;
  entries.reserve(vocabulary->size());
  for (const auto& [spelling, id] : vocabulary->items()) {
    LOCKET_TRY(const TokenId value, token_id(id, fmt::format("model.vocab[\"{}\"]", spelling)));
    entries.push_back({.spelling = spelling, .id = value});
  }
  return entries;
}

// A merge is written "left right", or ["left", "right"].
std::optional<Merge> read_merge(const Json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return Merge{value[0].get<std::string>(), value[1].get<std::string>()};
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    return std::nullopt;
  }
  return Merge{text.substr(0, space), text.substr(space + 1)};
}

Result<std::vector<Merge>> read_merges(const Json& model) {
  LOCKET_TRY(const Json* list, member(model, "merges", JsonType::array, "model"));
  std::vector<Merge> merges;
  merges.reserve(list->size());
  for (const Json& value : *list) {
    std::optional<Merge> merge = read_merge(value);
    if (!merge) {
      return bad(fmt::format("model.merges[{}] is {}, expected two pieces with one space between",
                             merges.size(), shown(value)));
    }
    merges.push_back(std::move(*merge));
  }
  return merges;
}

Status check_model_options(const Json& model) {
  LOCKET_TRY(const std::string type, string_member(model, "type", "model"));
  if (type != "BPE") return bad(fmt::format("model: \"type\" is \"{}\", expected \"BPE\"", type));
  LOCKET_TRY_STATUS(require_absent_or(model, "dropout", {0.0}, "model"));
  LOCKET_TRY_STATUS(require_absent_or(model, "unk_token", {}, "model"));
  LOCKET_TRY_STATUS(require_absent_or(model, "continuing_subword_prefix", {""}, "model"));
  LOCKET_TRY_STATUS(require_absent_or(model, "end_of_word_suffix", {""}, "model"));
  LOCKET_TRY_STATUS(require_absent_or(model, "byte_fallback", {false}, "model"));
  return require_absent_or(model, "ignore_merges", {false}, "model");
}

Result<AddedToken> read_added_token(const Json& value, std::string_view where) {
  LOCKET_TRY(const Json* id, member(value, "id", JsonType::number_integer, where));
  AddedToken token;
  LOCKET_TRY(token.id, token_id(*id, where));
  LOCKET_TRY(token.spelling, string_member(value, "content", where));
  if (token.spelling.empty()) return bad(fmt::format("{}: \"content\" is empty", where));
  LOCKET_TRY(token.special, bool_member(value, "special", where));
  LOCKET_TRY(token.normalized, bool_member(value, "normalized", where));
  for (const std::string_view flag : {"single_word", "lstrip", "rstrip"}) {
    LOCKET_TRY_STATUS(require_absent_or(value, flag, {false}, where));
  }
  return token;
}

Result<std::vector<AddedToken>> read_added_tokens(const Json& file) {
  LOCKET_TRY(const Json* list, member(file, "added_tokens", JsonType::array, "the file"));
  std::vector<AddedToken> tokens;
  tokens.reserve(list->size());
  for (const Json& value : *list) {
    LOCKET_TRY(AddedToken token,
               read_added_token(value, fmt::format("added_tokens[{}]", tokens.size())));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Result<SplitPattern> read_split(const Json& step, const std::string& where) {
  LOCKET_TRY(const std::string behavior, string_member(step, "behavior", where));
  if (behavior != "Isolated") {
    return bad(fmt::format("{}: \"behavior\" is \"{}\", known is \"Isolated\"", where, behavior));
  }
  LOCKET_TRY_STATUS(require_absent_or(step, "invert", {false}, where));
  LOCKET_TRY(const Json* pattern, member(step, "pattern", JsonType::object, where));
  const bool is_regex = pattern->contains("Regex");
  LOCKET_TRY(std::string text, string_member(*pattern, is_regex ? "Regex" : "String", where));
  return SplitPattern{is_regex ? PatternKind::kRegex : PatternKind::kLiteral, std::move(text)};
}

// Digits cuts off every number character, or every run of them. The reference library knows its
// number characters here by Unicode 17.0, elsewhere by 16.0; 17.0 added two ranges.
Result<SplitPattern> read_digits(const Json& step, const std::string& where) {
  constexpr std::string_view kNumber = "[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]";
  LOCKET_TRY(const bool individual, bool_member(step, "individual_digits", where));
  return SplitPattern{PatternKind::kRegex, fmt::format("{}{}", kNumber, individual ? "" : "+")};
}

// Byte level cuts nothing here; it must come last, since what follows would see the byte alphabet.
// Both flags must be there: a library that misses one takes it as true.
Status check_byte_level(const Json& step, const std::string& where) {
  for (const std::string_view flag : {"add_prefix_space", "use_regex"}) {
    LOCKET_TRY(const bool value, bool_member(step, flag, where));
    if (value) {
      return bad(fmt::format("{}: \"{}\" is true, and only false can be honoured", where, flag));
    }
  }
  return {};
}

Result<std::vector<SplitPattern>> read_steps(const std::vector<Json>& steps) {
  std::vector<SplitPattern> splits;
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const std::string where = fmt::format("pre_tokenizer step {}", index);
    LOCKET_TRY(const std::string type, string_member(steps[index], "type", where));
    const bool is_last = index + 1 == steps.size();
    if (is_last != (type == "ByteLevel")) {
      return bad(fmt::format("{} is \"{}\"; \"ByteLevel\" must be the last step, and only that",
                             where, type));
    }
    if (type == "Split") {
      LOCKET_TRY(splits.emplace_back(), read_split(steps[index], where));
    } else if (type == "Digits") {
      LOCKET_TRY(splits.emplace_back(), read_digits(steps[index], where));
    } else if (type == "ByteLevel") {
      LOCKET_TRY_STATUS(check_byte_level(steps[index], where));
    } else {
      return bad(
          fmt::format("{}: \"type\" is \"{}\", known are Split, Digits, ByteLevel", where, type));
    }
  }
  return splits;
}

Result<std::vector<SplitPattern>> read_pre_tokenizer(const Json& file) {
  LOCKET_TRY(const Json* step, member(file, "pre_tokenizer", JsonType::object, "the file"));
  LOCKET_TRY(const std::string type, string_member(*step, "type", "pre_tokenizer"));
  if (type != "Sequence") return read_steps({*step});
  LOCKET_TRY(const Json* steps, member(*step, "pretokenizers", JsonType::array, "pre_tokenizer"));
  if (steps->empty()) return bad("pre_tokenizer has no steps, expected at least \"ByteLevel\"");
  return read_steps(steps->get<std::vector<Json>>());
}

// A normalizer would change the text before it is split; released files have none, or an empty
// list.
Status check_normalizer(const Json& file) {
  const auto found = file.find("normalizer");
  if (found == file.end() || found->is_null()) return {};
  LOCKET_TRY(const std::string type, string_member(*found, "type", "normalizer"));
  if (type != "Sequence") {
    return bad(fmt::format("normalizer: \"type\" is \"{}\", and only none can be honoured", type));
  }
  LOCKET_TRY(const Json* list, member(*found, "normalizers", JsonType::array, "normalizer"));
  if (!list->empty())
    return bad("normalizer: the list is not empty, and only none can be honoured");
  return {};
}

Status check_part_type(const Json& file, std::string_view part) {
  LOCKET_TRY(const Json* value, member(file, part, JsonType::object, "the file"));
  LOCKET_TRY(const std::string type, string_member(*value, "type", part));
  if (type == "ByteLevel") return {};
  return bad(fmt::format("{}: \"type\" is \"{}\", known is \"ByteLevel\"", part, type));
}

Status check_frame(const Json& file) {
  if (!file.is_object()) return bad(fmt::format("is {}, expected an object", file.type_name()));
  LOCKET_TRY_STATUS(check_normalizer(file));
  LOCKET_TRY_STATUS(check_part_type(file, "decoder"));
  // Other post-processors put tokens around the text.
  const auto post = file.find("post_processor");
  if (post == file.end() || post->is_null()) return {};
  return check_part_type(file, "post_processor");
}

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text) {
  LOCKET_TRY(const Json file, parse_json(json_text));
  LOCKET_TRY_STATUS(check_frame(file));
  LOCKET_TRY(const Json* model, member(file, "model", JsonType::object, "the file"));
  LOCKET_TRY_STATUS(check_model_options(*model));
  TokenizerFile result;
  LOCKET_TRY(result.vocabulary, read_vocabulary(*model));
  LOCKET_TRY(result.merges, read_merges(*model));
  LOCKET_TRY(result.added_tokens, read_added_tokens(file));
  LOCKET_TRY(result.splits, read_pre_tokenizer(file));
  return result;
}

}  // namespace locket::tokenizer
