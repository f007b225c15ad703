#include "chat/strict_schema.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chat/json_fields.h"

namespace locket::chat {
namespace {

constexpr std::array<std::string_view, 3> kDefinitionKeys = {"$defs", "$def", "definitions"};

// Keywords that are copied as they are.
constexpr std::array<std::string_view, 11> kPlainKeywords = {
    "$ref",      "enum",    "const",   "default",          "pattern",
    "format",    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf"};

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

JsonValue json_false() {
  JsonValue value;
  value.kind = JsonValue::Kind::kBool;
  return value;
}

class Normalizer {
 public:
  Result<JsonValue> normalize_root(const JsonValue& schema, std::string_view path) {
    for (const std::string_view key : kDefinitionKeys) {
      const JsonValue* definitions = schema.find(key);
      if (definitions == nullptr) continue;
      if (!definitions->is_object()) {
        return wrong_value(field_path(path, key), *definitions, "an object");
      }
      for (const JsonMember& member : definitions->members) {
        definitions_.push_back({fmt::format("#/{}/{}", key, member.name), key, &member});
      }
    }
    LOCKET_TRY(JsonValue root, normalize(schema, path));
    LOCKET_TRY_STATUS(append_used_definitions(root, path));
    return root;
  }

 private:
  struct Definition {
    std::string reference;
    std::string_view key;  // of the object that holds it
    const JsonMember* member;
  };

  Result<JsonValue> normalize(const JsonValue& schema, std::string_view path) {
    if (!schema.is_object()) return wrong_value(path, schema, "a schema object");
    if (schema.find("type") == nullptr && schema.find("anyOf") == nullptr &&
        schema.find("$ref") == nullptr) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{} has none of type, anyOf and $ref; a strict schema needs one of "
                              "them at every place",
                              path));
    }
    JsonValue out;
    out.kind = JsonValue::Kind::kObject;
    if (const JsonValue* type = schema.find("type")) out.members.push_back({"type", *type});
    if (is_object_schema(schema)) LOCKET_TRY_STATUS(normalize_object(schema, path, out));
    for (const JsonMember& member : schema.members) {
      LOCKET_TRY_STATUS(normalize_keyword(member, schema, path, out));
    }
    if (const JsonValue* text = schema.find("description")) {
      out.members.push_back({"description", *text});
    }
    return out;
  }

  static bool is_object_schema(const JsonValue& schema) {
    const JsonValue* type = schema.find("type");
    return type != nullptr && type->is_string() && type->text == "object";
  }

  Status normalize_object(const JsonValue& schema, std::string_view path, JsonValue& out) {
    JsonValue properties;
    properties.kind = JsonValue::Kind::kObject;
    LOCKET_TRY(const JsonValue* given, Fields(schema, path).optional_object("properties"));
    if (given != nullptr) {
      const std::string properties_path = field_path(path, "properties");
      for (const JsonMember& member : given->members) {
        LOCKET_TRY(JsonValue value,
                   normalize(member.value, field_path(properties_path, member.name)));
        properties.members.push_back({member.name, std::move(value)});
      }
    }
    const JsonValue* others = schema.find("additionalProperties");
    if (others != nullptr && (others->kind != JsonValue::Kind::kBool || others->boolean)) {
      return wrong_value(field_path(path, "additionalProperties"), *others,
                         "false in a strict schema");
    }
    LOCKET_TRY(JsonValue required, required_names(schema, properties, path));
    out.members.push_back({"properties", std::move(properties)});
    out.members.push_back({"additionalProperties", json_false()});
    out.members.push_back({"required", std::move(required)});
    return {};
  }

  static Result<JsonValue> required_names(const JsonValue& schema, const JsonValue& properties,
                                          std::string_view path) {
    JsonValue all;
    all.kind = JsonValue::Kind::kArray;
    std::set<std::string_view> expected;
    for (const JsonMember& member : properties.members) {
      all.items.push_back(json_string(member.name));
      expected.insert(member.name);
    }
    LOCKET_TRY(const JsonValue* given, Fields(schema, path).optional_array("required"));
    if (given == nullptr) return all;
    std::set<std::string_view> found;
    for (const JsonValue& item : given->items) found.insert(item.text);
    if (found != expected || given->items.size() != expected.size()) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}.required does not list every property once; a strict schema "
                              "requires all properties",
                              path));
    }
    return *given;
  }

  Status normalize_keyword(const JsonMember& member, const JsonValue& schema, std::string_view path,
                           JsonValue& out) {
    constexpr std::array<std::string_view, 4> kElsewhere = {"type", "title", "description",
                                                            "$schema"};
    constexpr std::array<std::string_view, 3> kOfObjects = {"properties", "additionalProperties",
                                                            "required"};
    const std::string_view name = member.name;
    if (contains(kElsewhere, name) || contains(kDefinitionKeys, name)) return {};
    if (contains(kOfObjects, name) && is_object_schema(schema)) return {};
    const std::string member_path = field_path(path, name);
    if (name == "items") {
      LOCKET_TRY(JsonValue items, normalize(member.value, member_path));
      out.members.push_back({"items", std::move(items)});
      return {};
    }
    if (name == "anyOf") return normalize_choices(member.value, member_path, out);
    if (!contains(kPlainKeywords, name)) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{} is not allowed in a strict schema", member_path));
    }
    if (name == "$ref") LOCKET_TRY_STATUS(use_definition(member.value, member_path));
    out.members.push_back(member);
    return {};
  }

  Status normalize_choices(const JsonValue& choices, std::string_view path, JsonValue& out) {
    if (!choices.is_array() || choices.items.empty()) {
      return wrong_value(path, choices, "a list of schemas");
    }
    JsonValue list;
    list.kind = JsonValue::Kind::kArray;
    for (std::size_t index = 0; index < choices.items.size(); ++index) {
      LOCKET_TRY(JsonValue choice, normalize(choices.items[index], item_path(path, index)));
      list.items.push_back(std::move(choice));
    }
    out.members.push_back({"anyOf", std::move(list)});
    return {};
  }

  Status use_definition(const JsonValue& reference, std::string_view path) {
    if (reference.is_string() && reference.text == "#") return {};
    for (const Definition& definition : definitions_) {
      if (!reference.is_string() || definition.reference != reference.text) continue;
      if (used_.insert(definition.reference).second) pending_.push_back(&definition);
      return {};
    }
    return wrong_value(path, reference, "the place of a definition, such as #/$defs/NAME");
  }

  // Definitions that are referred to, also from each other, in the order of their first use.
  Status append_used_definitions(JsonValue& root, std::string_view path) {
    for (std::size_t next = 0; next < pending_.size(); ++next) {
      const Definition& definition = *pending_[next];
      const std::string place =
          field_path(field_path(path, definition.key), definition.member->name);
      LOCKET_TRY(JsonValue value, normalize(definition.member->value, place));
      const auto holder =
          std::find_if(root.members.begin(), root.members.end(),
                       [&](const JsonMember& member) { return member.name == definition.key; });
      if (holder != root.members.end()) {
        holder->value.members.push_back({definition.member->name, std::move(value)});
        continue;
      }
      JsonValue object;
      object.kind = JsonValue::Kind::kObject;
      object.members.push_back({definition.member->name, std::move(value)});
      root.members.push_back({std::string(definition.key), std::move(object)});
    }
    return {};
  }

  std::vector<Definition> definitions_;
  std::set<std::string> used_;
  std::vector<const Definition*> pending_;
};

}  // namespace

Result<JsonValue> normalize_strict_schema(const JsonValue& schema, std::string_view path) {
  return Normalizer().normalize_root(schema, path);
}

}  // namespace locket::chat
