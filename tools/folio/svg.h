// A picture as an SVG file, element by element, and what plots have in common.
#pragma once

#include <array>
#include <string>

namespace folio_cli {

// Told apart by people who do not see all colours, and on paper (Okabe and Ito).
inline constexpr std::array<const char*, 4> kPlotColours = {"#d55e00", "#56b4e9", "#009e73",
                                                            "#e69f00"};

// All in pixels from the top left corner.
class Svg {
 public:
  Svg(double width, double height);

  void rect(double x, double y, double width, double height, const std::string& colour);
  void line(double x1, double y1, double x2, double y2, const char* colour);
  void circle(double x, double y, double radius, const std::string& colour);
  // A square on its corner.
  void diamond(double x, double y, double radius, const std::string& colour);
  // anchor: start, middle or end, where x is. more: attributes.
  void label(double x, double y, const char* anchor, const std::string& text,
             const char* more = "");
  void title(double x, const std::string& text);
  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

// As a label of an axis.
std::string axis_number(double value);

}  // namespace folio_cli
