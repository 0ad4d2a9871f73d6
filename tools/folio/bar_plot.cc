#include "tools/folio/bar_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/folio/svg.h"

namespace folio_cli {

namespace {

// Pixels.
constexpr double kLeastWidth = 720, kHeight = 440;
constexpr double kLeft = 80, kRight = 24, kTop = 64, kBottom = 104;
constexpr double kCharacter = 7.5, kLine = 15;  // of a label, about
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr double kBarShare = 0.6;  // of the place of a bar

// The next of 1, 2, 5, 10, 20 ... that divides the axis into at most six.
double tick_step(double top) {
  const double rough = std::max(top, 1e-9) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

// A bar's label, line by line.
std::vector<std::string> lines_of(const std::string& label) {
  std::vector<std::string> lines(1);
  for (const char c : label) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

// Room for the longest label at each bar.
double plot_width(const BarPlot& plot) {
  size_t longest = 0;
  for (const BarPlot::Bar& bar : plot.bars) {
    for (const std::string& line : lines_of(bar.label)) longest = std::max(longest, line.size());
  }
  const double wanted = static_cast<double>(plot.bars.size() * (longest + 1)) * kCharacter;
  return std::max(kLeastWidth - kLeft - kRight, wanted);
}

void draw_axis(double width, double step, int ticks, Svg* svg) {
  for (int i = 0; i <= ticks; ++i) {
    const double y = kTop + kPlotHeight * (1 - static_cast<double>(i) / ticks);
    svg->line(kLeft, y, kLeft + width, y, i == 0 ? "#333333" : "#dddddd");
    svg->label(kLeft - 8, y + 4, "end", axis_number(step * i));
  }
}

void draw_bars(const BarPlot& plot, double width, double top, Svg* svg) {
  const double place = width / static_cast<double>(std::max<size_t>(plot.bars.size(), 1));
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    const BarPlot::Bar& bar = plot.bars[i];
    const double middle = kLeft + place * (static_cast<double>(i) + 0.5);
    double sum = 0;
    for (size_t k = 0; k < bar.parts.size(); ++k) {
      const double height = kPlotHeight * bar.parts[k] / top;
      sum += bar.parts[k];
      svg->rect(middle - place * kBarShare / 2, kTop + kPlotHeight * (1 - sum / top),
                place * kBarShare, height, kPlotColours[k % kPlotColours.size()]);
    }
    char total[32];
    std::snprintf(total, sizeof total, "%.1f", sum);
    svg->label(middle, kTop + kPlotHeight * (1 - sum / top) - 5, "middle", total);
    double y = kTop + kPlotHeight + 20;
    for (const std::string& line : lines_of(bar.label)) {
      svg->label(middle, y, "middle", line);
      y += kLine;
    }
  }
}

}  // namespace

std::string to_svg(const BarPlot& plot) {
  double highest = 0;
  for (const BarPlot::Bar& bar : plot.bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += part;
    highest = std::max(highest, sum);
  }
  const double step = tick_step(highest);
  const int ticks = std::max(1, static_cast<int>(std::ceil(highest / step)));
  const double width = plot_width(plot);
  Svg svg(kLeft + width + kRight, kHeight);
  svg.title((kLeft + width + kRight) / 2, plot.title);
  draw_axis(width, step, ticks, &svg);
  draw_bars(plot, width, step * ticks, &svg);
  svg.label(kLeft + width / 2, kTop + kPlotHeight + 54, "middle", plot.x_title);
  svg.label(kLeft - 8, kTop - 14, "end", plot.y_title);
  double x = kLeft;
  for (size_t k = 0; k < plot.series.size(); ++k) {
    svg.rect(x, kHeight - 34, 14, 14, kPlotColours[k % kPlotColours.size()]);
    svg.label(x + 20, kHeight - 22, "start", plot.series[k]);
    x += width / static_cast<double>(plot.series.size());
  }
  return svg.finish();
}

}  // namespace folio_cli
