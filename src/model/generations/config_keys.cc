#include "model/generations/config_keys.h"

#include <utility>

namespace locket::model {

using checkpoint::ConfigObject;

Status read_integers(const ConfigObject& object, std::initializer_list<IntegerKey> keys) {
  for (const IntegerKey& entry : keys) {
    LOCKET_TRY(*entry.target, object.integer_in(entry.key, entry.range));
  }
  return {};
}

Result<double> positive_number(const ConfigObject& object, std::string_view key) {
  LOCKET_TRY(const double value, object.number(key));
  if (!(value > 0)) return object.refuse(key, "a number above 0");
  return value;
}

Status read_number(const ConfigObject& object, std::string_view key, float* target) {
  LOCKET_TRY(const double value, positive_number(object, key));
  *target = static_cast<float>(value);
  return {};
}

tl::unexpected<Error> refuse_unsupported(const ConfigObject& object, std::string_view key,
                                         std::string_view needed) {
  Error error = object.refuse(key, needed).value();
  error.code = ErrorCode::kUnsupported;
  return tl::make_unexpected(std::move(error));
}

}  // namespace locket::model
