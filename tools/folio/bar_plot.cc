#include "tools/folio/bar_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace folio_cli {

namespace {

// Pixels.
constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 80, kRight = 24, kTop = 64, kBottom = 96;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr double kBarShare = 0.6;  // of the place of a bar

// Told apart by people who do not see all colours, and on paper (Okabe and Ito).
constexpr const char* kColours[] = {"#d55e00", "#56b4e9", "#009e73", "#e69f00"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
  }
  return result;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// The next of 1, 2, 5, 10, 20 ... that divides the axis into at most six.
double tick_step(double top) {
  const double rough = std::max(top, 1e-9) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class Svg {
 public:
  Svg() {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) + "\" height=\"" +
            number(kHeight) + "\" viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
            "\" font-family=\"sans-serif\" font-size=\"13\">\n" +
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  }

  void rect(double x, double y, double width, double height, const std::string& colour) {
    text_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
             "\" height=\"" + number(height) + "\" fill=\"" + colour + "\"/>\n";
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    text_ += "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
             "\" y2=\"" + number(y2) + "\" stroke=\"" + colour + "\"/>\n";
  }
  void label(double x, double y, const char* anchor, const std::string& text,
             const char* more = "") {
    text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor +
             "\"" + more + ">" + escaped(text) + "</text>\n";
  }
  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

void draw_axis(double step, int ticks, Svg* svg) {
  for (int i = 0; i <= ticks; ++i) {
    const double y = kTop + kPlotHeight * (1 - static_cast<double>(i) / ticks);
    svg->line(kLeft, y, kLeft + kPlotWidth, y, i == 0 ? "#333333" : "#dddddd");
    svg->label(kLeft - 8, y + 4, "end", number(step * i));
  }
}

void draw_bars(const BarPlot& plot, double top, Svg* svg) {
  const double place = kPlotWidth / static_cast<double>(std::max<size_t>(plot.bars.size(), 1));
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    const BarPlot::Bar& bar = plot.bars[i];
    const double middle = kLeft + place * (static_cast<double>(i) + 0.5);
    double sum = 0;
    for (size_t k = 0; k < bar.parts.size(); ++k) {
      const double height = kPlotHeight * bar.parts[k] / top;
      sum += bar.parts[k];
      svg->rect(middle - place * kBarShare / 2, kTop + kPlotHeight * (1 - sum / top),
                place * kBarShare, height, kColours[k % 4]);
    }
    char total[32];
    std::snprintf(total, sizeof total, "%.1f", sum);
    svg->label(middle, kTop + kPlotHeight * (1 - sum / top) - 5, "middle", total);
    svg->label(middle, kTop + kPlotHeight + 20, "middle", bar.label);
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
  Svg svg;
  svg.label(kWidth / 2, 30, "middle", plot.title, " font-size=\"16\" font-weight=\"bold\"");
  draw_axis(step, ticks, &svg);
  draw_bars(plot, step * ticks, &svg);
  svg.label(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 44, "middle", plot.x_title);
  svg.label(kLeft - 8, kTop - 14, "end", plot.y_title);
  double x = kLeft;
  for (size_t k = 0; k < plot.series.size(); ++k) {
    svg.rect(x, kHeight - 34, 14, 14, kColours[k % 4]);
    svg.label(x + 20, kHeight - 22, "start", plot.series[k]);
    x += kPlotWidth / static_cast<double>(plot.series.size());
  }
  return svg.finish();
}

}  // namespace folio_cli
