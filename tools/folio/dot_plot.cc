#include "tools/folio/dot_plot.h"

#include <algorithm>
#include <cmath>

#include "tools/folio/svg.h"

namespace folio_cli {

namespace {

// Pixels.
constexpr double kWidth = 860, kTop = 84, kBottom = 56, kRight = 32;
constexpr double kLine = 20, kDot = 5;
constexpr double kCharacter = 7.5;  // of a label, about
constexpr double kGap = 12;         // between labels and the axis

bool is_drawn(double value) { return std::isfinite(value) && value > 0; }

// 1, 2 and 5 times powers of ten, from one at or below all values and 1 to one at or above them.
std::vector<double> axis_ticks(const DotPlot& plot) {
  double least = 1, most = 1;
  for (const DotPlot::Row& row : plot.rows) {
    for (const double value : row.values) {
      if (!is_drawn(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  std::vector<double> ticks;
  const int last = static_cast<int>(std::ceil(std::log10(most)));
  for (int power = static_cast<int>(std::floor(std::log10(least))); power <= last; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) ticks.push_back(factor * std::pow(10, power));
  }
  const auto above = std::lower_bound(ticks.begin(), ticks.end(), most);
  if (above != ticks.end()) ticks.erase(above + 1, ticks.end());
  const auto below = std::upper_bound(ticks.begin(), ticks.end(), least);
  ticks.erase(ticks.begin(), below - 1);
  if (ticks.size() == 1) ticks = {ticks[0] / 2, ticks[0], ticks[0] * 2};  // all are that
  return ticks;
}

class Picture {
 public:
  explicit Picture(const DotPlot& plot)
      : plot_(plot),
        ticks_(axis_ticks(plot)),
        left_(label_width(plot)),
        bottom_(kTop + kLine * static_cast<double>(plot.rows.size() + (has_mean() ? 1 : 0))),
        svg_(kWidth, bottom_ + kBottom) {}

  std::string draw() {
    svg_.title(kWidth / 2, plot_.title);
    draw_legend();
    draw_axis();
    double y = kTop;
    for (const DotPlot::Row& row : plot_.rows) {
      draw_row(row, y + kLine / 2, "");
      y += kLine;
    }
    if (has_mean()) {
      svg_.line(kGap, y, kWidth - kRight, y, "#333333");
      draw_row(plot_.mean, y + kLine / 2, " font-weight=\"bold\"");
    }
    return svg_.finish();
  }

 private:
  static double label_width(const DotPlot& plot) {
    size_t longest = plot.mean.label.size();
    for (const DotPlot::Row& row : plot.rows) longest = std::max(longest, row.label.size());
    return std::min(2 * kGap + static_cast<double>(longest) * kCharacter, kWidth / 2);
  }

  bool has_mean() const { return !plot_.mean.label.empty(); }

  double x_of(double value) const {
    const double share =
        std::log(value / ticks_.front()) / std::log(ticks_.back() / ticks_.front());
    return left_ + share * (kWidth - kRight - left_);
  }

  void draw_axis() {
    for (const double tick : ticks_) {
      const bool is_one = std::abs(tick - 1) < 1e-9;
      svg_.line(x_of(tick), kTop, x_of(tick), bottom_, is_one ? "#333333" : "#dddddd");
      svg_.label(x_of(tick), bottom_ + 18, "middle", axis_number(tick));
    }
    svg_.label((left_ + kWidth - kRight) / 2, bottom_ + 42, "middle", plot_.x_title);
  }

  void draw_legend() {
    const auto count = static_cast<double>(std::max<size_t>(plot_.series.size(), 1));
    for (size_t k = 0; k < plot_.series.size(); ++k) {
      const double x = left_ + static_cast<double>(k) * (kWidth - kRight - left_) / count;
      draw_dot(k, x, kTop - 26);
      svg_.label(x + kGap, kTop - 22, "start", plot_.series[k]);
    }
  }

  void draw_row(const DotPlot::Row& row, double y, const char* more) {
    svg_.label(left_ - kGap, y + 4, "end", row.label, more);
    svg_.line(left_, y, kWidth - kRight, y, "#eeeeee");
    for (size_t k = row.values.size(); k-- > 0;) {  // the first one on top
      if (is_drawn(row.values[k])) draw_dot(k, x_of(row.values[k]), y);
    }
  }

  void draw_dot(size_t series, double x, double y) {
    const char* colour = kPlotColours[series % kPlotColours.size()];
    switch (series) {
      case 0:
        svg_.circle(x, y, kDot, colour);
        break;
      case 1:
        svg_.rect(x - kDot + 1, y - kDot + 1, 2 * kDot - 2, 2 * kDot - 2, colour);
        break;
      default:
        svg_.diamond(x, y, kDot + 1, colour);
    }
  }

  const DotPlot& plot_;
  std::vector<double> ticks_;
  double left_;    // where the axis begins
  double bottom_;  // of the rows
  Svg svg_;
};

}  // namespace

std::string to_svg(const DotPlot& plot) { return Picture(plot).draw(); }

}  // namespace folio_cli
