#include "cli/token_lines.h"

#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/check.h"
#include "cli/base64.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::TokenId;
using tokenizer::Tokenizer;

tl::unexpected<Error> bad_line(const TokenLine& line, std::string_view what) {
  return fail(ErrorCode::kBadRequest, fmt::format("line {}: {}", line.number, what));
}

// The reason in the library's message stands behind its first " - ".
std::string json_reason(const Json::parse_error& error) {
  const std::string_view message = error.what();
  const std::size_t dash = message.find(" - ");
  const std::string_view reason =
      dash == std::string_view::npos ? message : message.substr(dash + 3);
  return tokenizer::repair_utf8(reason);
}

Result<Json> parse_line(const TokenLine& line) {
  try {
    Json value = Json::parse(line.text);
    if (value.is_object()) return value;
    return bad_line(line, fmt::format("is {}, expected a JSON object", value.type_name()));
  } catch (const Json::parse_error& error) {
    return bad_line(line,
                    fmt::format("is not JSON at byte {}: {}", error.byte, json_reason(error)));
  } catch (const Json::exception& error) {
    return bad_line(line, tokenizer::repair_utf8(error.what()));
  }
}

Result<std::string> text_of(const TokenLine& line) {
  LOCKET_TRY(const Json object, parse_line(line));
  const auto text = object.find("text");
  const auto base64 = object.find("base64");
  if ((text == object.end()) == (base64 == object.end())) {
    return bad_line(line, "expected either \"text\" or \"base64\"");
  }
  const Json& value = text == object.end() ? *base64 : *text;
  const std::string_view key = text == object.end() ? "base64" : "text";
  if (!value.is_string()) {
    return bad_line(line, fmt::format("\"{}\" is {}, expected a string", key, value.type_name()));
  }
  if (key == "text") return value.get<std::string>();
  Result<std::string> bytes = decode_base64(value.get_ref<const std::string&>());
  if (!bytes) return bad_line(line, fmt::format("\"base64\": {}", bytes.error().message));
  return bytes;
}

Result<std::vector<TokenId>> ids_of(const Tokenizer& tokenizer, const TokenLine& line) {
  LOCKET_TRY(const Json object, parse_line(line));
  const auto found = object.find("ids");
  if (found == object.end() || !found->is_array()) {
    return bad_line(line, "expected \"ids\" with a list of ids");
  }
  std::vector<TokenId> ids;
  for (const Json& value : *found) {
    const bool exists =
        value.is_number_unsigned() && value.get<std::uint64_t>() < tokenizer.vocabulary_size();
    if (!exists) {
      return bad_line(line, fmt::format("ids[{}] is {}, expected a whole number from 0 to {}",
                                        ids.size(), value.dump(), tokenizer.vocabulary_size() - 1));
    }
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

// `bytes` as a JSON string literal if they are UTF-8, else with every byte outside ASCII as \xNN.
std::string readable_piece(const std::string& bytes) {
  if (tokenizer::repair_utf8(bytes) == bytes) return Json(bytes).dump();
  std::string ascii;
  for (const char byte : bytes) {
    const auto value = static_cast<std::uint8_t>(byte);
    const bool printable = value >= 0x20 && value < 0x7F;
    ascii += printable ? std::string(1, byte) : fmt::format("\\x{:02X}", value);
  }
  return '"' + ascii + '"';
}

std::string readable_line(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}:{}", id, readable_piece(tokenizer.decode_bytes({&id, 1})));
  }
  return text;
}

std::string json_line(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  Json pieces = Json::array();
  for (const TokenId id : ids) {
    pieces.push_back(tokenizer::repair_utf8(tokenizer.decode_bytes({&id, 1})));
  }
  Json object = {{"ids", std::vector<TokenId>(ids.begin(), ids.end())}};
  object["pieces"] = std::move(pieces);
  return object.dump();
}

}  // namespace

Result<std::string> encode_token_line(const Tokenizer& tokenizer, const TokenLine& line,
                                      TokenLineFormat format) {
  LOCKET_TRY(const std::string text, text_of(line));
  const std::vector<TokenId> ids = tokenizer.encode_text(text);
  switch (format) {
    case TokenLineFormat::kReadable:
      return readable_line(tokenizer, ids);
    case TokenLineFormat::kJson:
      return json_line(tokenizer, ids);
    case TokenLineFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

Result<std::string> decode_token_line(const Tokenizer& tokenizer, const TokenLine& line) {
  LOCKET_TRY(const std::vector<TokenId> ids, ids_of(tokenizer, line));
  const std::string bytes = tokenizer.decode_bytes(ids);
  Json object = {{"text", tokenizer::repair_utf8(bytes)}};
  object["base64"] = encode_base64(bytes);
  return object.dump();
}

std::string error_line(const Error& error, const TokenLine& line) {
  Json body = {{"code", error_code_name(error.code)}};
  body["message"] = tokenizer::repair_utf8(error.message);
  body["line"] = line.number;
  return Json{{"error", std::move(body)}}.dump();
}

}  // namespace locket::cli
