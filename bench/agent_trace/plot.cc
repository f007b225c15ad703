#include "agent_trace/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

namespace locket::agent_trace {
namespace {

constexpr double kWidth = 800;
constexpr double kHeight = 500;
constexpr double kLeft = 76;
constexpr double kRight = 776;
constexpr double kTop = 104;
constexpr double kBottom = 430;
constexpr double kKeys = 70;  // the row that says which curve is which

constexpr std::string_view kInk = "#1f2430";
constexpr std::string_view kGrey = "#667085";
constexpr std::string_view kLine = "#e4e7ec";

// Told apart by people who see few colours, and by their markers.
struct Look {
  std::string_view color;
  int marker;
};
constexpr std::array<Look, 3> kLooks = {Look{"#0b62a8", 0}, Look{"#c8540a", 1}, Look{"#15803d", 2}};

struct Point {
  double x = 0;
  double y = 0;
};

class Axes {
 public:
  explicit Axes(const std::vector<std::uint64_t>& budgets)
      : least_(std::log2(static_cast<double>(budgets.front()))),
        most_(std::max(std::log2(static_cast<double>(budgets.back())), least_ + 1)) {}

  double x(std::uint64_t budget) const {
    const double share = (std::log2(static_cast<double>(budget)) - least_) / (most_ - least_);
    return kLeft + 28 + share * (kRight - kLeft - 56);
  }
  static double y(double rate) { return kBottom - rate * (kBottom - kTop); }

 private:
  double least_;
  double most_;
};

std::string text_at(Point at, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", at.x, at.y, style, text);
}

std::string frame(const Results& results, const Axes& axes) {
  std::string svg;
  for (int percent = 0; percent <= 100; percent += 20) {
    const double y = Axes::y(percent / 100.0);
    svg += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
                       kLeft, y, kRight, y, percent == 0 ? kGrey : kLine);
    svg += text_at({kLeft - 10, y + 4.5}, "class=\"tick\" text-anchor=\"end\"",
                   fmt::format("{} %", percent));
  }
  for (const std::uint64_t budget : results.budgets) {
    const double x = axes.x(budget);
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"{}\"/>\n", x,
                       kBottom, x, kBottom + 6, kGrey);
    svg += text_at({x, kBottom + 23}, "class=\"tick\" text-anchor=\"middle\"", budget_text(budget));
  }
  svg += text_at({(kLeft + kRight) / 2, kBottom + 52}, "class=\"axis\" text-anchor=\"middle\"",
                 "memory for prefixes (logarithmic)");
  svg += fmt::format(
      "<text transform=\"translate(22 {:.1f}) rotate(-90)\" class=\"axis\" "
      "text-anchor=\"middle\">prompt tokens found in memory</text>\n",
      (kTop + kBottom) / 2);
  return svg;
}

std::string ceiling_line(const Results& results) {
  const double y = Axes::y(results.ceiling);
  std::string svg = fmt::format(
      "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-dasharray=\"5 4\"/>\n",
      kLeft, y, kRight, y, kGrey);
  svg += text_at({kLeft + 6, y + 15}, "class=\"note\"",
                 fmt::format("unlimited memory: {:.1f} %", 100 * results.ceiling));
  return svg;
}

std::string marker(const Look& look, Point at) {
  constexpr double kSize = 5.5;
  if (look.marker == 0) {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", at.x, at.y,
                       kSize, look.color);
  }
  if (look.marker == 1) {
    return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       at.x - 5, at.y - 5, 10, 10, look.color);
  }
  return fmt::format("<path d=\"M{:.1f} {:.1f} l6.5 11 h-13 z\" fill=\"{}\"/>\n", at.x, at.y - 6.5,
                     look.color);
}

std::string bytes_text(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  const auto whole = static_cast<std::int64_t>(std::llround(bytes));
  return fmt::format("{},{:03} B", whole / 1000, whole % 1000);
}

// The rates of one budget, beside their points: of the highest curve above, of the others below,
// none over another; above also what lies close to the axis.
std::string rate_labels(const Results& results, std::size_t budget, double x) {
  std::vector<std::size_t> order;
  for (std::size_t kind = 0; kind < results.kinds.size(); ++kind) order.push_back(kind);
  const auto rate = [&](std::size_t kind) { return results.tallies[kind][budget].hit_rate(); };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rate(a) > rate(b); });
  std::string svg;
  double last = 0;
  for (const std::size_t kind : order) {
    const bool is_above = kind == order.front() || rate(kind) < 0.12;
    const double y = std::max(Axes::y(rate(kind)) + (is_above ? -12 : 22), last + 15);
    svg += text_at({x, y},
                   fmt::format("class=\"rate\" text-anchor=\"middle\" fill=\"{}\"",
                               kLooks[kind % kLooks.size()].color),
                   fmt::format("{:.1f}", 100 * rate(kind)));
    last = y;
  }
  return svg;
}

std::string curve(const Results& results, std::size_t kind, const Axes& axes) {
  const Look& look = kLooks[kind % kLooks.size()];
  std::string line;
  std::string markers;
  for (std::size_t budget = 0; budget < results.budgets.size(); ++budget) {
    const Point at = {axes.x(results.budgets[budget]),
                      Axes::y(results.tallies[kind][budget].hit_rate())};
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : " L", at.x, at.y);
    markers += marker(look, at);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\"/>\n", line,
                     look.color) +
         markers;
}

std::string legend(const Results& results) {
  std::string svg;
  double x = kLeft;
  for (std::size_t kind = 0; kind < results.kinds.size(); ++kind) {
    const Look& look = kLooks[kind % kLooks.size()];
    svg += marker(look, {x + 6, kKeys});
    const std::string label = fmt::format("{}: {} a token", results.kinds[kind].name,
                                          bytes_text(results.kinds[kind].bytes_per_token));
    svg +=
        text_at({x + 18, kKeys + 5}, fmt::format("class=\"key\" fill=\"{}\"", look.color), label);
    x += 52 + 7.6 * static_cast<double>(label.size());
  }
  return svg;
}

}  // namespace

std::string plot_svg(const Results& results, const std::string& subtitle) {
  const Axes axes(results.budgets);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
      "<style>.title{{font-size:18px;font-weight:bold;fill:{2}}} .sub{{font-size:12.5px;fill:{3}}} "
      ".tick{{font-size:12.5px;fill:{3}}} .axis{{font-size:13.5px;fill:{2}}} "
      ".note{{font-size:12px;fill:{3}}} .rate{{font-size:12px}} "
      ".key{{font-size:13.5px;font-weight:bold}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, kInk, kGrey);
  svg += text_at({kLeft, 26}, "class=\"title\"",
                 "Coding agents: how much of the prompts is still in memory");
  svg += text_at({kLeft, 45}, "class=\"sub\"", subtitle);
  svg += legend(results) + frame(results, axes) + ceiling_line(results);
  for (std::size_t kind = results.kinds.size(); kind > 0; --kind) {
    svg += curve(results, kind - 1, axes);
  }
  for (std::size_t budget = 0; budget < results.budgets.size(); ++budget) {
    svg += rate_labels(results, budget, axes.x(results.budgets[budget]));
  }
  return svg + "</svg>\n";
}

}  // namespace locket::agent_trace
