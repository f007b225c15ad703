// Two kinds of plots as SVG files that need no other: lines over logarithmic axes, named at their
// ends, and bars over a logarithmic axis with marks. Told apart by more than colour. Pure
// functions.
#pragma once

#include <string>
#include <vector>

namespace locket::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;  // all above 0, ascending in x
};

// Powers of ten are marked on the upright axis, the given places on the other one.
struct LinePlot {
  std::string title;
  std::string subtitle;
  std::string x_name;
  std::string y_name;
  std::vector<PlotPoint> x_ticks;  // x; y is not used
  std::vector<std::string> x_texts;
  std::vector<PlotLine> lines;  // at most 8
};
std::string line_plot(const LinePlot& plot);

struct PlotBar {
  std::string name;
  double value = 0;           // above 0
  std::string text;           // beside the bar
  std::vector<double> marks;  // of the kinds of `mark_names`; 0: it has none of this kind
};
struct BarPlot {
  std::string title;
  std::string subtitle;
  std::string value_name;
  std::string bar_name;
  std::vector<std::string> mark_names;  // at most 2
  std::vector<PlotBar> bars;
};
std::string bar_plot(const BarPlot& plot);

}  // namespace locket::cli
