#include "tools/folio/bar_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace folio_cli {

namespace {

// Pixels.
constexpr double kLeastWidth = 720, kHeight = 440;
constexpr double kLeft = 80, kRight = 24, kTop = 64, kBottom = 104;
constexpr double kCharacter = 7.5, kLine = 15;  // of a label, about
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

class Svg {
 public:
  explicit Svg(double width) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) + "\" height=\"" +
            number(kHeight) + "\" viewBox=\"0 0 " + number(width) + " " + number(kHeight) +
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

void draw_axis(double width, double step, int ticks, Svg* svg) {
  for (int i = 0; i <= ticks; ++i) {
    const double y = kTop + kPlotHeight * (1 - static_cast<double>(i) / ticks);
    svg->line(kLeft, y, kLeft + width, y, i == 0 ? "#333333" : "#dddddd");
    svg->label(kLeft - 8, y + 4, "end", number(step * i));
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
                place * kBarShare, height, kColours[k % 4]);
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
  Svg svg(kLeft + width + kRight);
  svg.label((kLeft + width + kRight) / 2, 30, "middle", plot.title,
            " font-size=\"16\" font-weight=\"bold\"");
  draw_axis(width, step, ticks, &svg);
  draw_bars(plot, width, step * ticks, &svg);
  svg.label(kLeft + width / 2, kTop + kPlotHeight + 54, "middle", plot.x_title);
  svg.label(kLeft - 8, kTop - 14, "end", plot.y_title);
  double x = kLeft;
  for (size_t k = 0; k < plot.series.size(); ++k) {
    svg.rect(x, kHeight - 34, 14, 14, kColours[k % 4]);
    svg.label(x + 20, kHeight - 22, "start", plot.series[k]);
    x += width / static_cast<double>(plot.series.size());
  }
  return svg.finish();
}

}  // namespace folio_cli
