// Ratios as dots over a logarithmic axis, where 2 and 1/2 are as far from 1, as an SVG file, for
// folio compare --plot.
#pragma once

#include <string>
#include <vector>

namespace folio_cli {

struct DotPlot {
  std::string title;
  std::string x_title;
  std::vector<std::string> series;  // names of the dots of a row; at most 3, told apart by form too
  struct Row {
    std::string label;
    std::vector<double> values;  // one per series; what is not finite and above 0 has no dot
  };
  std::vector<Row> rows;  // from the top
  Row mean;               // below them, apart; without a label: none
};

std::string to_svg(const DotPlot& plot);

}  // namespace folio_cli
