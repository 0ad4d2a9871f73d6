// A stacked bar plot as an SVG file, for folio memory --plot.
#pragma once

#include <string>
#include <vector>

namespace folio_cli {

struct BarPlot {
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<std::string> series;  // names of the parts of a bar, lowest first; at most 4
  struct Bar {
    std::string label;          // of one line or two
    std::vector<double> parts;  // one per series, none negative
  };
  std::vector<Bar> bars;
};

std::string to_svg(const BarPlot& plot);

}  // namespace folio_cli
