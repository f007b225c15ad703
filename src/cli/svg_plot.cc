#include "cli/svg_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace locket::cli {
namespace {

constexpr double kWidth = 860;
constexpr double kLeft = 84;
constexpr double kRight = 700;  // lines are named beyond it
constexpr double kTop = 70;
constexpr double kBottom = 440;
constexpr double kBarLeft = 190;
constexpr double kBarRight = 660;
constexpr double kBarStep = 34;

constexpr std::string_view kInk = "#1f2430";
constexpr std::string_view kGrey = "#5d6472";
constexpr std::string_view kPale = "#e4e7ec";

// Told apart by people who see few colours, too: every second line is broken.
struct Look {
  std::string_view color;
  std::string_view dashes;
};
constexpr std::array<Look, 8> kLooks = {{{"#6b3fa0", ""},
                                         {"#6b3fa0", "6 4"},
                                         {"#c8540a", ""},
                                         {"#8a6d00", "6 4"},
                                         {"#15803d", ""},
                                         {"#15803d", "6 4"},
                                         {"#0b62a8", ""},
                                         {"#a3123f", "6 4"}}};

struct Range {
  double least = 0;  // logarithms
  double most = 1;

  double share(double value) const { return (std::log10(value) - least) / (most - least); }
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '&') {
      out += "&amp;";
    } else if (letter == '<') {
      out += "&lt;";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string text_at(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(text));
}

std::string segment(PlotPoint from, PlotPoint to, std::string_view color) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", from.x,
      from.y, to.x, to.y, color);
}

std::string head(double height, const std::string& title, const std::string& subtitle) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
      "<title>{4}</title>\n<style>.title{{font-size:18px;font-weight:bold;fill:{2}}} "
      ".sub,.tick{{font-size:12.5px;fill:{3}}} .axis{{font-size:13.5px;fill:{2}}} "
      ".name{{font-size:13.5px;font-weight:bold;paint-order:stroke;stroke:#ffffff;"
      "stroke-width:4px}} .value{{font-size:13px;fill:{2}}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, height, kInk, kGrey, escaped(title));
  svg += text_at(20, 28, "class=\"title\"", title);
  return svg + text_at(20, 48, "class=\"sub\"", subtitle);
}

// 1,000 as "1 k", 1,000,000 as "1 M".
std::string power_text(int power) {
  constexpr std::array<std::string_view, 7> kUnits = {"", " k", " M", " G", " T", " P", " E"};
  const auto unit = static_cast<std::size_t>(std::clamp(power / 3, 0, 6));
  return fmt::format("{}{}", std::lround(std::pow(10, power - 3 * static_cast<int>(unit))),
                     kUnits[unit]);
}

Range y_range(const LinePlot& plot) {
  Range range = {.least = 300, .most = -300};
  for (const PlotLine& line : plot.lines) {
    for (const PlotPoint& point : line.points) {
      range.least = std::min(range.least, std::log10(point.y));
      range.most = std::max(range.most, std::log10(point.y));
    }
  }
  return {.least = std::floor(range.least), .most = std::max(range.most, range.least + 1) + 0.05};
}

std::string line_frame(const LinePlot& plot, const Range& x, const Range& y) {
  std::string svg;
  for (int power = static_cast<int>(y.least); power <= y.most; ++power) {
    const double at = kBottom - (power - y.least) / (y.most - y.least) * (kBottom - kTop);
    svg += segment({kLeft, at}, {kRight, at}, kPale);
    svg += text_at(kLeft - 8, at + 4.5, "class=\"tick\" text-anchor=\"end\"", power_text(power));
  }
  for (std::size_t i = 0; i < plot.x_ticks.size(); ++i) {
    const double at = kLeft + x.share(plot.x_ticks[i].x) * (kRight - kLeft);
    svg += segment({at, kBottom}, {at, kBottom + 6}, kGrey);
    svg += text_at(at, kBottom + 22, "class=\"tick\" text-anchor=\"middle\"", plot.x_texts[i]);
  }
  svg += segment({kLeft, kBottom}, {kRight, kBottom}, kGrey);
  svg += text_at((kLeft + kRight) / 2, kBottom + 46, "class=\"axis\" text-anchor=\"middle\"",
                 plot.x_name);
  return svg + fmt::format(
                   "<text transform=\"translate(22 {:.1f}) rotate(-90)\" class=\"axis\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   (kTop + kBottom) / 2, escaped(plot.y_name));
}

// Where names stand: beside the ends of their lines, none over another.
std::vector<PlotPoint> name_places(const std::vector<PlotPoint>& ends) {
  constexpr double kApart = 17;
  std::vector<std::size_t> order(ends.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(ends[i].x, ends[i].y); });
  std::vector<PlotPoint> places(ends.size());
  PlotPoint last;
  for (const std::size_t i : order) {
    const bool is_below = ends[i].x - last.x < 1;
    places[i] = {ends[i].x, is_below ? std::max(ends[i].y, last.y + kApart) : ends[i].y};
    last = places[i];
  }
  return places;
}

// The first kind is a dot, the second a larger square on its corner, so that both are seen at one
// place.
std::string mark_at(std::size_t kind, double x, double y) {
  if (kind == 0) {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#c8540a\"/>\n", x, y);
  }
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f} l9 9 l-9 9 l-9 -9 z\" fill=\"#ffffff\" stroke=\"#15803d\" "
      "stroke-width=\"2.5\"/>\n",
      x, y - 9);
}

std::string bar_marks(const PlotBar& bar, const Range& range, double y) {
  std::string svg;
  for (std::size_t kind = bar.marks.size(); kind > 0; --kind) {
    const double value = bar.marks[kind - 1];
    if (!(value > 0)) continue;
    svg += mark_at(kind - 1, kBarLeft + range.share(value) * (kBarRight - kBarLeft), y + 9);
  }
  return svg;
}

std::string bar_legend(const BarPlot& plot, double y) {
  std::string svg = fmt::format(
      "<rect x=\"20\" y=\"{:.1f}\" width=\"22\" height=\"12\" fill=\"#0b62a8\" rx=\"2\"/>\n",
      y - 10);
  svg += text_at(48, y, "class=\"value\"", plot.bar_name);
  double x = 66 + 7.2 * static_cast<double>(plot.bar_name.size());
  for (std::size_t i = 0; i < plot.mark_names.size(); ++i) {
    svg += mark_at(i, x, y - 4);
    svg += text_at(x + 12, y, "class=\"value\"", plot.mark_names[i]);
    x += 36 + 7.2 * static_cast<double>(plot.mark_names[i].size());
  }
  return svg;
}

Range bar_range(const BarPlot& plot) {
  double least = 1e300;
  double most = 1;
  for (const PlotBar& bar : plot.bars) {
    least = std::min(least, bar.value);
    most = std::max(most, bar.value);
    for (const double mark : bar.marks) most = std::max(most, mark);
  }
  return {.least = std::floor(std::log10(least)) - 0.3, .most = std::log10(most) + 0.05};
}

}  // namespace

std::string line_plot(const LinePlot& plot) {
  const Range x = {.least = std::log10(plot.x_ticks.front().x),
                   .most = std::log10(plot.x_ticks.back().x)};
  const Range y = y_range(plot);
  std::string svg = head(500, plot.title, plot.subtitle) + line_frame(plot, x, y);
  std::vector<PlotPoint> ends;
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const Look& look = kLooks[i % kLooks.size()];
    std::string path;
    PlotPoint at;
    for (const PlotPoint& point : plot.lines[i].points) {
      at = {kLeft + x.share(point.x) * (kRight - kLeft),
            kBottom - y.share(point.y) * (kBottom - kTop)};
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", at.x, at.y);
    }
    svg += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\" "
        "stroke-dasharray=\"{}\"/>\n",
        path, look.color, look.dashes.empty() ? "none" : look.dashes);
    // A line that ends early is marked there.
    if (at.x < kRight - 1) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", at.x, at.y,
                         look.color);
    }
    ends.push_back(at);
  }
  const std::vector<PlotPoint> places = name_places(ends);
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    svg += text_at(places[i].x + 8, places[i].y + 4.5,
                   fmt::format("class=\"name\" fill=\"{}\"", kLooks[i % kLooks.size()].color),
                   plot.lines[i].name);
  }
  return svg + "</svg>\n";
}

std::string bar_plot(const BarPlot& plot) {
  const Range range = bar_range(plot);
  const double bottom = 96 + kBarStep * static_cast<double>(plot.bars.size());
  std::string svg = head(bottom + 56, plot.title, plot.subtitle) + bar_legend(plot, 74);
  for (int power = static_cast<int>(std::ceil(range.least)); power <= range.most; ++power) {
    const double x =
        kBarLeft + (power - range.least) / (range.most - range.least) * (kBarRight - kBarLeft);
    svg += segment({x, 90}, {x, bottom}, kPale);
    svg += text_at(x, bottom + 18, "class=\"tick\" text-anchor=\"middle\"", power_text(power));
  }
  double y = 96;
  for (const PlotBar& bar : plot.bars) {
    const double width = range.share(bar.value) * (kBarRight - kBarLeft);
    double beyond = width;
    for (const double mark : bar.marks) {
      if (mark > 0) beyond = std::max(beyond, range.share(mark) * (kBarRight - kBarLeft));
    }
    svg += text_at(kBarLeft - 10, y + 14, "class=\"value\" text-anchor=\"end\"", bar.name);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" fill=\"#0b62a8\" "
        "rx=\"2\"/>\n",
        kBarLeft, y, width);
    svg += bar_marks(bar, range, y);
    svg += text_at(kBarLeft + beyond + 12, y + 14, "class=\"value\"", bar.text);
    y += kBarStep;
  }
  svg += text_at((kBarLeft + kBarRight) / 2, bottom + 42, "class=\"axis\" text-anchor=\"middle\"",
                 plot.value_name);
  return svg + "</svg>\n";
}

}  // namespace locket::cli
