#include "chat/internal/schema_reader.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <unordered_map>
#include <utility>

#include "chat/json_fields.h"
#include "chat/json_number.h"

namespace locket::chat {
namespace {

using Names = std::initializer_list<std::string_view>;

constexpr std::array<std::string_view, 8> kTypeNames = {"object", "array",   "string", "integer",
                                                        "number", "boolean", "null",   ""};

// Say nothing about which values fit.
constexpr std::array<std::string_view, 15> kAnnotations = {
    "title",     "description", "default",  "examples",    "example",
    "$schema",   "$id",         "$comment", "deprecated",  "readOnly",
    "writeOnly", "$defs",       "$def",     "definitions", "$anchor"};

constexpr std::array<std::string_view, 21> kKeywords = {"type",
                                                        "enum",
                                                        "const",
                                                        "anyOf",
                                                        "$ref",
                                                        "properties",
                                                        "required",
                                                        "additionalProperties",
                                                        "minLength",
                                                        "maxLength",
                                                        "pattern",
                                                        "format",
                                                        "minimum",
                                                        "maximum",
                                                        "exclusiveMinimum",
                                                        "exclusiveMaximum",
                                                        "multipleOf",
                                                        "items",
                                                        "minItems",
                                                        "maxItems",
                                                        "id"};

constexpr std::array<std::string_view, 3> kCombiners = {"anyOf", "oneOf", "allOf"};

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<SchemaType> type_of_name(std::string_view name) {
  const auto found = std::find(kTypeNames.begin(), kTypeNames.end() - 1, name);
  if (found == kTypeNames.end() - 1) return std::nullopt;
  return static_cast<SchemaType>(found - kTypeNames.begin());
}

// The type that a schema without "type" means by its other keywords.
SchemaType implied_type(const JsonValue& schema) {
  const auto has = [&schema](Names names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return schema.find(name) != nullptr; });
  };
  if (has({"enum", "const"})) return SchemaType::kAny;
  if (has({"properties", "additionalProperties", "required"})) return SchemaType::kObject;
  if (has({"items", "minItems", "maxItems"})) return SchemaType::kArray;
  if (has({"pattern", "format", "minLength", "maxLength"})) return SchemaType::kString;
  if (has({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})) {
    return SchemaType::kNumber;
  }
  return SchemaType::kAny;
}

// One step of a JSON pointer.
std::string unescape_pointer(std::string_view step) {
  std::string out;
  for (std::size_t at = 0; at < step.size(); ++at) {
    const bool is_escape = step[at] == '~' && at + 1 < step.size();
    if (!is_escape) {
      out.push_back(step[at]);
      continue;
    }
    ++at;
    out.push_back(step[at] == '1' ? '/' : '~');
  }
  return out;
}

}  // namespace

Status SchemaReader::refuse(std::string_view path, std::string_view rule) const {
  if (strictness_ == Strictness::kLoose) return {};
  return fail(ErrorCode::kBadRequest, fmt::format("{} {}", path, rule));
}

Status SchemaReader::refuse_value(std::string_view path, const JsonValue& value,
                                  std::string_view wanted) const {
  if (strictness_ == Strictness::kLoose) return {};
  return wrong_value(path, value, wanted);
}

Result<std::vector<SchemaLeaf>> SchemaReader::leaves(const JsonValue& schema,
                                                     std::string_view path) const {
  std::vector<SchemaLeaf> out;
  std::set<const JsonValue*> seen;
  std::vector<Place> pending = {{&schema, std::string(path)}};
  while (!pending.empty()) {
    const Place place = std::move(pending.back());
    pending.pop_back();
    if (!seen.insert(place.schema).second) continue;
    if (place.schema->kind == JsonValue::Kind::kBool) {
      if (place.schema->boolean) out.push_back({nullptr, SchemaType::kAny, place.path});
      continue;
    }
    if (!place.schema->is_object()) {
      LOCKET_TRY_STATUS(refuse_value(place.path, *place.schema, "a schema object"));
      out.push_back({nullptr, SchemaType::kAny, place.path});
      continue;
    }
    LOCKET_TRY_STATUS(check_keywords(place));
    LOCKET_TRY(Places inner, alternatives(place));
    if (inner.empty()) {
      LOCKET_TRY_STATUS(add_typed_leaves(place, out));
    }
    pending.insert(pending.end(), std::make_move_iterator(inner.rbegin()),
                   std::make_move_iterator(inner.rend()));
    if (out.size() > kMaxLeaves || pending.size() > kMaxLeaves) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{} has more than {} alternatives", path, kMaxLeaves));
    }
  }
  return out;
}

Status SchemaReader::check_keywords(const Place& place) const {
  for (const JsonMember& member : place.schema->members) {
    if (contains(kAnnotations, member.name) || contains(kKeywords, member.name)) continue;
    LOCKET_TRY_STATUS(
        refuse(field_path(place.path, member.name),
               "is not supported; a schema may use " +
                   fmt::format("{}", fmt::join(kKeywords.begin(), kKeywords.end() - 1, ", "))));
  }
  return {};
}

// The schemas that stand in place of this one; empty if it is a leaf.
Result<SchemaReader::Places> SchemaReader::alternatives(const Place& place) const {
  if (const JsonValue* reference = place.schema->find("$ref")) {
    LOCKET_TRY_STATUS(check_alone(place, "$ref"));
    LOCKET_TRY(Place target, resolve(*reference, field_path(place.path, "$ref")));
    return Places{std::move(target)};
  }
  // Beside a type, a loose reader keeps the type.
  const bool has_type =
      place.schema->find("type") != nullptr || place.schema->find("properties") != nullptr;
  if (has_type && strictness_ == Strictness::kLoose) return Places{};
  for (const std::string_view keyword : kCombiners) {
    const JsonValue* list = place.schema->find(keyword);
    if (list == nullptr) continue;
    LOCKET_TRY_STATUS(check_alone(place, keyword));
    const std::string path = field_path(place.path, keyword);
    if (!list->is_array() || list->items.empty()) {
      LOCKET_TRY_STATUS(refuse_value(path, *list, "a list of schemas"));
      continue;
    }
    Places out;
    for (std::size_t index = 0; index < list->items.size(); ++index) {
      out.push_back({&list->items[index], item_path(path, index)});
      // Of schemas that must all fit, a loose reader takes the first.
      if (keyword == "allOf") break;
    }
    return out;
  }
  return Places{};
}

Status SchemaReader::check_alone(const Place& place, std::string_view keyword) const {
  for (const JsonMember& member : place.schema->members) {
    if (member.name == keyword || contains(kAnnotations, member.name)) continue;
    LOCKET_TRY_STATUS(refuse(field_path(place.path, member.name),
                             fmt::format("stands beside {}, which is not supported; put it into "
                                         "each alternative",
                                         keyword)));
  }
  return {};
}

Result<SchemaReader::Place> SchemaReader::resolve(const JsonValue& reference,
                                                  std::string_view path) const {
  Place place{&root_, root_path_};
  const bool is_local = reference.is_string() && reference.text.starts_with('#');
  std::string_view rest = reference.text;
  if (is_local) rest.remove_prefix(1);
  while (is_local && place.schema != nullptr && rest.starts_with('/')) {
    rest.remove_prefix(1);
    const std::string step = unescape_pointer(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.find('/'), rest.size()));
    place.path = field_path(place.path, step);
    if (place.schema->is_array()) {
      const std::optional<std::uint64_t> index = read_uint64(step);
      const bool is_there = index && *index < place.schema->items.size();
      place.schema = is_there ? &place.schema->items[*index] : nullptr;
    } else {
      place.schema = place.schema->find(step);
    }
  }
  if (is_local && rest.empty() && place.schema != nullptr) return place;
  return wrong_value(path, reference, "the place of a definition, such as #/$defs/NAME");
}

Status SchemaReader::add_typed_leaves(const Place& place, std::vector<SchemaLeaf>& out) const {
  const JsonValue* type = place.schema->find("type");
  if (type == nullptr) {
    out.push_back({place.schema, implied_type(*place.schema), place.path});
    return {};
  }
  const std::string path = field_path(place.path, "type");
  constexpr std::string_view kWanted =
      "object, array, string, integer, number, boolean, null or a list of them";
  const std::size_t before = out.size();
  const auto add = [&](const JsonValue& name) -> Status {
    const std::optional<SchemaType> known =
        name.is_string() ? type_of_name(name.text) : std::nullopt;
    if (!known) return refuse_value(path, name, kWanted);
    out.push_back({place.schema, *known, place.path});
    return {};
  };
  if (!type->is_array()) {
    LOCKET_TRY_STATUS(add(*type));
  }
  for (const JsonValue& name : type->items) LOCKET_TRY_STATUS(add(name));
  if (out.size() != before) return {};
  LOCKET_TRY_STATUS(refuse_value(path, *type, kWanted));
  out.push_back({nullptr, SchemaType::kAny, place.path});
  return {};
}

Result<std::optional<std::size_t>> SchemaReader::count(const SchemaLeaf& leaf,
                                                       std::string_view keyword) const {
  const JsonValue* value = leaf.find(keyword);
  if (value == nullptr) return std::optional<std::size_t>();
  const std::optional<std::uint64_t> number =
      value->kind == JsonValue::Kind::kInteger ? read_uint64(value->text) : std::nullopt;
  if (number && *number <= kMaxCount) return std::optional<std::size_t>(*number);
  LOCKET_TRY_STATUS(refuse_value(field_path(leaf.path, keyword), *value,
                                 fmt::format("an integer from 0 to {}", kMaxCount)));
  return std::optional<std::size_t>();
}

Result<ObjectShape> SchemaReader::object_shape(const SchemaLeaf& leaf) const {
  ObjectShape shape;
  const JsonValue* properties = leaf.find("properties");
  const std::string properties_path = field_path(leaf.path, "properties");
  if (properties != nullptr && !properties->is_object()) {
    LOCKET_TRY_STATUS(refuse_value(properties_path, *properties, "an object"));
    properties = nullptr;
  }
  if (properties != nullptr) {
    for (const JsonMember& member : properties->members) {
      shape.members.push_back(
          {member.name, &member.value, false, field_path(properties_path, member.name)});
    }
  }
  const JsonValue* others = leaf.find("additionalProperties");
  shape.others_path = field_path(leaf.path, "additionalProperties");
  // An object of which nothing is said may be any; one whose members are listed has only those.
  shape.allows_others = others == nullptr && shape.members.empty();
  if (others != nullptr) {
    shape.allows_others = others->kind != JsonValue::Kind::kBool || others->boolean;
    if (others->is_object()) shape.others = others;
  }
  if (const JsonValue* names = leaf.find("required")) {
    LOCKET_TRY_STATUS(require(*names, field_path(leaf.path, "required"), shape));
  }
  return shape;
}

Status SchemaReader::require(const JsonValue& names, std::string_view path,
                             ObjectShape& shape) const {
  if (!names.is_array()) return refuse_value(path, names, "a list of names");
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t at = 0; at < shape.members.size(); ++at) known[shape.members[at].name] = at;
  for (const JsonValue& name : names.items) {
    if (!name.is_string()) {
      LOCKET_TRY_STATUS(refuse_value(path, name, "a list of names"));
      continue;
    }
    const auto found = known.find(name.text);
    if (found != known.end()) {
      shape.members[found->second].is_required = true;
      continue;
    }
    if (!shape.allows_others) {
      LOCKET_TRY_STATUS(refuse_value(
          path, name, "one of the properties where additionalProperties allows no others"));
      continue;
    }
    known[name.text] = shape.members.size();
    shape.members.push_back({name.text, shape.others, true, shape.others_path});
  }
  return {};
}

}  // namespace locket::chat
