#include "cli/ids_file.h"

#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/file.h"

namespace locket::cli {

Result<std::vector<engine::TokenId>> read_ids_file(const std::filesystem::path& path) {
  LOCKET_TRY(const std::string text, read_whole_file(path));
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{}: {}; a JSON list of token ids is needed, for example [0, 17, 4]",
                            path.string(), what));
  };
  if (parsed.is_discarded()) return wrong("it is not JSON");
  if (!parsed.is_array()) return wrong(fmt::format("its type is {}", parsed.type_name()));
  if (parsed.empty()) return wrong("the list is empty");
  std::vector<engine::TokenId> ids;
  for (const auto& value : parsed) {
    if (!value.is_number()) {
      return wrong(fmt::format("entry {} is of type {}", ids.size(), value.type_name()));
    }
    // A negative number is no unsigned one for this library.
    constexpr std::uint64_t kMost = std::numeric_limits<engine::TokenId>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost) {
      return wrong(fmt::format("entry {} is {}", ids.size(), value.dump()));
    }
    ids.push_back(value.get<engine::TokenId>());
  }
  return ids;
}

}  // namespace locket::cli
