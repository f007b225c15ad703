// Random schemas of the subset, and random values that fit them, made without the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace locket::chat {

class SchemaMaker {
 public:
  using Json = nlohmann::ordered_json;

  explicit SchemaMaker(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  // A schema with a definition that refers to itself.
  Json document() {
    Json node = {{"type", "object"},
                 {"properties", {{"v", schema(1)}, {"next", Json::object()}}},
                 {"required", Json::array({"v"})},
                 {"additionalProperties", false}};
    node["properties"]["next"] = {{"anyOf", {{{"$ref", "#/$defs/node"}}, {{"type", "null"}}}}};
    Json root = schema(3);
    root["$defs"] = {{"node", node}};
    return root;
  }

  // A value that fits; `root` holds the definitions.
  Json value(const Json& schema, const Json& root, std::size_t depth = 0) {
    if (schema.contains("$ref")) return value(root["$defs"]["node"], root, depth + 1);
    if (schema.contains("anyOf")) {
      const Json& choices = schema["anyOf"];
      return value(depth > 3 ? flat_choice(choices) : choices[below(choices.size())], root, depth);
    }
    if (schema.contains("const")) return schema["const"];
    if (schema.contains("enum")) return schema["enum"][below(schema["enum"].size())];
    if (!schema.contains("type")) return any(2);
    const std::string type = schema["type"];
    if (type == "object") return object_value(schema, root, depth);
    if (type == "array") return array_value(schema, root, depth);
    if (type == "string") return string_value(schema);
    if (type == "integer") return integer_value(schema);
    if (type == "number") return number_value(schema);
    if (type == "boolean") return below(2) == 0;
    return nullptr;
  }

  std::string text(std::size_t min, std::size_t max) {
    constexpr std::string_view kPieces[] = {"a", "Z", "0",  " ", "\"", "\\",   "\n", "é", "中",
                                            "😀", "/", "\t", "{", "]",  "\x01", "<",  "ｚ"};
    std::string out;
    for (std::size_t count = min + below(max - min + 1); count > 0; --count) {
      out += kPieces[below(std::size(kPieces))];
    }
    return out;
  }

 private:
  // One that holds no other schema, if there is one.
  static const Json& flat_choice(const Json& choices) {
    for (const Json& choice : choices) {
      const bool is_flat =
          choice.contains("type") && choice["type"] != "array" && choice["type"] != "object";
      if (is_flat || choice.contains("enum") || choice.contains("const")) return choice;
    }
    return choices.front();
  }

  struct Sample {
    std::string_view keyword;
    std::string_view rule;
    std::vector<std::string> texts;
  };

  static const std::vector<Sample>& samples() {
    static const std::vector<Sample> all = {
        {"pattern", "^[a-z]{2,5}$", {"ab", "hello"}},
        {"pattern", "^(foo|ba[rz])+\\d*$", {"foo", "barbaz12", "foobar"}},
        {"pattern", "[bB0-9]", {"xxbyy", "B", "7"}},
        {"pattern", "^\\$[0-9]+(\\.[0-9]{2})?$", {"$5", "$10.25"}},
        {"pattern", "^[^\"x]+$", {"a\\b", "é\n", "q"}},
        {"format", "email", {"a@b.de", "x.y+z@mail.example.com"}},
        {"format", "ipv4", {"1.2.3.4", "255.255.255.0"}},
        {"format", "ipv6", {"::1", "fe80::a:b", "1:2:3:4:5:6:7:8"}},
        {"format", "uuid", {"123e4567-e89b-12d3-a456-426614174000"}},
        {"format", "date", {"2026-11-30", "1999-02-28"}}};
    return all;
  }

  Json schema(std::size_t depth) {
    const std::size_t kinds = depth == 0 ? 8 : 12;
    switch (below(kinds)) {
      case 0:
        return string_schema();
      case 1:
        return sample_schema();
      case 2:
        return integer_schema();
      case 3:
        return number_schema();
      case 4:
        return {{"type", "boolean"}};
      case 5:
        return {{"type", "null"}};
      case 6:
        return {{"enum", {"red", "re", 1, -2.5, nullptr, "gr\"ün"}}, {"description", "d"}};
      case 7:
        return {{"const", below(2) == 0 ? Json("fix") : Json(17)}};
      case 8:
        return array_schema(depth);
      case 9:
        return {{"anyOf", {schema(depth - 1), schema(depth - 1)}}};
      case 10:
        return below(2) == 0 ? Json{{"$ref", "#/$defs/node"}} : Json{{"title", "anything"}};
      default:
        return object_schema(depth);
    }
  }

  Json string_schema() {
    Json out = {{"type", "string"}};
    const std::size_t min = below(4);
    if (below(2) == 0) out["minLength"] = min;
    if (below(2) == 0) out["maxLength"] = min + below(6);
    return out;
  }

  Json sample_schema() {
    const Sample& sample = samples()[below(samples().size())];
    return {{"type", "string"}, {std::string(sample.keyword), std::string(sample.rule)}};
  }

  Json integer_schema() {
    Json out = {{"type", "integer"}};
    const int low = static_cast<int>(below(200)) - 100;
    if (below(2) == 0) out[below(2) == 0 ? "minimum" : "exclusiveMinimum"] = low;
    if (below(2) == 0) out[below(2) == 0 ? "maximum" : "exclusiveMaximum"] = low + 60;
    if (below(3) == 0) out["multipleOf"] = 1 + below(9);
    return out;
  }

  Json number_schema() {
    Json out = {{"type", "number"}};
    const double low = static_cast<double>(below(2000)) / 8.0 - 100.0;
    if (below(2) == 0) out[below(2) == 0 ? "minimum" : "exclusiveMinimum"] = low;
    if (below(2) == 0) out[below(2) == 0 ? "maximum" : "exclusiveMaximum"] = low + 60.5;
    if (below(4) == 0) out["multipleOf"] = 0.25;
    return out;
  }

  Json array_schema(std::size_t depth) {
    Json out = {{"type", "array"}};
    if (below(4) != 0) out["items"] = schema(depth - 1);
    const std::size_t min = below(3);
    if (below(2) == 0) out["minItems"] = min;
    if (below(2) == 0) out["maxItems"] = min + below(4);
    return out;
  }

  Json object_schema(std::size_t depth) {
    constexpr std::string_view kNames[] = {"a", "ab", "name", "é\"x", "a b", "Z_9"};
    Json out = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (const std::string_view name : kNames) {
      if (below(2) == 0) continue;
      out["properties"][std::string(name)] = schema(depth - 1);
      if (below(2) == 0) out["required"].push_back(std::string(name));
    }
    switch (below(4)) {
      case 0:
        out["additionalProperties"] = true;
        break;
      case 1:
        out["additionalProperties"] = schema(0);
        break;
      default:
        out["additionalProperties"] = false;
        break;
    }
    return out;
  }

  Json any(std::size_t depth) {
    switch (below(depth == 0 ? 4 : 6)) {
      case 0:
        return text(0, 4);
      case 1:
        return static_cast<int>(below(1000)) - 500;
      case 2:
        return static_cast<double>(below(1000)) / 16.0;
      case 3:
        return nullptr;
      case 4: {
        Json list = Json::array();
        for (std::size_t count = below(3); count > 0; --count) list.push_back(any(depth - 1));
        return list;
      }
      default: {
        Json object = Json::object();
        for (std::size_t count = below(3); count > 0; --count) {
          object[text(0, 3)] = any(depth - 1);
        }
        return object;
      }
    }
  }

  Json object_value(const Json& schema, const Json& root, std::size_t depth) {
    Json out = Json::object();
    const Json empty = Json::array();
    const Json& required = schema.contains("required") ? schema["required"] : empty;
    for (const auto& [name, member] : schema["properties"].items()) {
      const bool is_required = std::find(required.begin(), required.end(), name) != required.end();
      if (is_required || (depth < 4 && below(2) == 0)) out[name] = value(member, root, depth + 1);
    }
    const Json& others = schema["additionalProperties"];
    for (std::size_t count = others == false ? 0 : below(3); count > 0; --count) {
      const std::string name = "other" + std::to_string(below(3));
      out[name] = others == true ? any(1) : value(others, root, depth + 1);
    }
    return out;
  }

  Json array_value(const Json& schema, const Json& root, std::size_t depth) {
    Json out = Json::array();
    const std::size_t min = schema.value("minItems", std::size_t{0});
    const std::size_t max = depth > 3 ? min : schema.value("maxItems", min + 2);
    for (std::size_t count = min + below(max - min + 1); count > 0; --count) {
      out.push_back(schema.contains("items") ? value(schema["items"], root, depth + 1) : any(1));
    }
    return out;
  }

  Json string_value(const Json& schema) {
    for (const Sample& sample : samples()) {
      const std::string keyword(sample.keyword);
      if (schema.contains(keyword) && schema[keyword] == sample.rule) {
        return sample.texts[below(sample.texts.size())];
      }
    }
    const std::size_t min = schema.value("minLength", std::size_t{0});
    return text(min, schema.value("maxLength", min + 5));
  }

  // Tries numbers of the step until one is inside.
  template <class Number>
  Json number_within(const Json& schema, Number step, Number smallest) {
    for (int count = 0;; ++count) {
      const auto value = static_cast<Number>(step * (static_cast<int>(below(2000)) - 1000));
      const bool fits = value >= schema.value("minimum", value) &&
                        value <= schema.value("maximum", value) &&
                        value > schema.value("exclusiveMinimum", value - smallest) &&
                        value < schema.value("exclusiveMaximum", value + smallest);
      if (fits) return value;
      if (count > 100'000) return nullptr;
    }
  }

  Json integer_value(const Json& schema) {
    return number_within<int>(schema, schema.value("multipleOf", 1), 1);
  }

  Json number_value(const Json& schema) { return number_within<double>(schema, 0.25, 0.25); }

  std::mt19937_64 random_;
};

}  // namespace locket::chat
