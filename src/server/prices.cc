#include "server/prices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"

namespace locket::server {
namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::sys_seconds;

constexpr double kTokensPerPrice = 1e6;
constexpr double kMostDollars = 1e6;
constexpr std::uint64_t kMostFileBytes = 1 << 16;

struct PriceName {
  std::string_view name;
  double Prices::*value;
};
constexpr std::array<PriceName, 4> kNames = {{{"hit", &Prices::hit},
                                              {"miss", &Prices::miss},
                                              {"output", &Prices::output},
                                              {"peak", &Prices::peak}}};

// Hours of a day; the end is outside.
struct Hours {
  int begin;
  int end;
};
constexpr std::array<Hours, 2> kPeakHours = {{{1, 4}, {6, 10}}};

Seconds whole_seconds(double unix_seconds) {
  return Seconds(std::chrono::seconds(static_cast<std::int64_t>(std::floor(unix_seconds))));
}

Status set_price(Prices& prices, std::string_view name, double value, std::string_view found) {
  const auto* known = std::ranges::find(kNames, name, &PriceName::name);
  if (known == kNames.end()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("prices: \"{}\" is no price; known are hit, miss, output, peak", name));
  }
  if (!std::isfinite(value) || value < 0 || value > kMostDollars) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("prices: {} is {}; it must be a number from 0 to {}", name, found,
                            kMostDollars));
  }
  prices.*(known->value) = value;
  return {};
}

Result<Prices> read_list(std::string_view text) {
  Prices prices;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("prices: \"{}\" is no price; write off, published, a file that ends "
                              "in .json, or a list as in hit=0.003,miss=0.15,output=0.60,peak=2",
                              item));
    }
    const std::string_view digits = item.substr(equals + 1);
    double value = 0;
    const auto [after, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_number = error == std::errc{} && after == digits.data() + digits.size();
    LOCKET_TRY_STATUS(set_price(prices, item.substr(0, equals), is_number ? value : -1,
                                fmt::format("\"{}\"", digits)));
  }
  return prices;
}

Result<Prices> read_file(const std::string& path) {
  LOCKET_TRY(const std::string text, read_whole_file(path, kMostFileBytes));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("{} is no JSON object; it must be one, as in {{\"hit\": 0.003}}", path));
  }
  Prices prices;
  for (const auto& [name, value] : json.items()) {
    const Status set = set_price(prices, name, value.is_number() ? value.get<double>() : -1,
                                 value.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (!set) return fail(set.error().code, fmt::format("{}: {}", path, set.error().message));
  }
  return prices;
}

}  // namespace

Result<std::optional<Prices>> read_prices(std::string_view text) {
  if (text == "off") return std::optional<Prices>{};
  if (text == "published") return std::optional<Prices>{Prices{}};
  if (text.empty()) return fail(ErrorCode::kBadRequest, "prices: nothing is given; off means none");
  LOCKET_TRY(const Prices prices,
             text.ends_with(".json") ? read_file(std::string(text)) : read_list(text));
  return std::optional<Prices>{prices};
}

bool is_peak_time(double unix_seconds) {
  const Seconds time = whole_seconds(unix_seconds);
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::weekday weekday(day);
  if (weekday == std::chrono::Saturday || weekday == std::chrono::Sunday) return false;
  const auto hour = std::chrono::floor<std::chrono::hours>(time - day).count();
  return std::ranges::any_of(
      kPeakHours, [hour](const Hours& peak) { return hour >= peak.begin && hour < peak.end; });
}

std::string utc_day(double unix_seconds) {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(whole_seconds(unix_seconds)));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

Bill bill_for(const Prices& prices, const service::RequestUsage& usage, double unix_seconds) {
  const bool is_peak = is_peak_time(unix_seconds);
  const double factor = (is_peak ? prices.peak : 1) / kTokensPerPrice;
  const std::size_t hit = std::min(usage.hit_tokens, usage.prompt_tokens);
  return {.hit = factor * prices.hit * static_cast<double>(hit),
          .miss = factor * prices.miss * static_cast<double>(usage.prompt_tokens - hit),
          .output = factor * prices.output * static_cast<double>(usage.completion_tokens),
          .is_peak = is_peak};
}

}  // namespace locket::server
