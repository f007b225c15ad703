#include "chat/strict_schema.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "chat/json_reader.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

std::string normalized(std::string_view schema) {
  const Result<JsonValue> parsed = read_json(schema, "the schema");
  if (!parsed) return parsed.error().message;
  const Result<JsonValue> strict = normalize_strict_schema(*parsed, "s");
  return strict ? python_json(*strict) : strict.error().message;
}

TEST(StrictSchemaTest, OrdersTheKeysOfObjects) {
  EXPECT_EQ(normalized(R"({"title": "T", "description": "d", "required": ["a"],
                           "properties": {"a": {"description": "x", "type": "string"}},
                           "type": "object"})"),
            R"({"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, )"
            R"("additionalProperties": false, "required": ["a"], "description": "d"})");
}

TEST(StrictSchemaTest, FillsInRequiredAndAdditionalProperties) {
  EXPECT_EQ(normalized(R"({"type": "object", "properties": {"b": {"type": "null"},
                           "a": {"type": "integer", "minimum": 0}}})"),
            R"({"type": "object", "properties": {"b": {"type": "null"}, )"
            R"("a": {"type": "integer", "minimum": 0}}, "additionalProperties": false, )"
            R"("required": ["b", "a"]})");
  EXPECT_EQ(
      normalized(R"({"type": "object"})"),
      R"({"type": "object", "properties": {}, "additionalProperties": false, "required": []})");
}

TEST(StrictSchemaTest, KeepsOnlyDefinitionsThatAreUsed) {
  EXPECT_EQ(normalized(R"({"type": "array", "items": {"$ref": "#/$defs/node"}, "$defs": {
                           "unused": {"type": "string"},
                           "node": {"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf"}]},
                           "leaf": {"type": "string", "title": "t"}}})"),
            R"({"type": "array", "items": {"$ref": "#/$defs/node"}, "$defs": )"
            R"({"node": {"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/leaf"}]}, )"
            R"("leaf": {"type": "string"}}})");
}

TEST(StrictSchemaTest, NamesThePlaceAndTheRule) {
  EXPECT_EQ(normalized(R"({"type": "object", "properties": {"z": {}}})"),
            "s.properties.z has none of type, anyOf and $ref; a strict schema needs one of them at "
            "every place");
  EXPECT_EQ(
      normalized(R"({"type": "object", "properties": {"z": {"type": "string"}},
                           "required": []})"),
      "s.required does not list every property once; a strict schema requires all properties");
  EXPECT_EQ(normalized(R"({"type": "object", "additionalProperties": true})"),
            "s.additionalProperties is true; it must be false in a strict schema");
  EXPECT_EQ(normalized(R"({"type": "string", "minLength": 1})"),
            "s.minLength is not allowed in a strict schema");
  EXPECT_EQ(normalized(R"({"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/x"}}]})"),
            "s.anyOf[0].items.$ref is \"#/$defs/x\"; it must be the place of a definition, such as "
            "#/$defs/NAME");
}

}  // namespace
}  // namespace locket::chat
