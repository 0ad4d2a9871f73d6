#include "tools/folio/svg.h"

#include <cstdio>

namespace folio_cli {

namespace {

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

// ` name="value"`.
std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + axis_number(value) + "\"";
}

std::string fill(const std::string& colour) { return " fill=\"" + colour + "\"/>\n"; }

}  // namespace

Svg::Svg(double width, double height) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
          attribute("height", height) + " viewBox=\"0 0 " + axis_number(width) + " " +
          axis_number(height) + "\" font-family=\"sans-serif\" font-size=\"13\">\n" +
          "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
}

void Svg::rect(double x, double y, double width, double height, const std::string& colour) {
  text_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + fill(colour);
}

void Svg::line(double x1, double y1, double x2, double y2, const char* colour) {
  text_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + " stroke=\"" + colour + "\"/>\n";
}

void Svg::circle(double x, double y, double radius, const std::string& colour) {
  text_ +=
      "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + fill(colour);
}

void Svg::diamond(double x, double y, double radius, const std::string& colour) {
  const auto point = [](double px, double py) { return axis_number(px) + "," + axis_number(py); };
  text_ += "<polygon points=\"" + point(x - radius, y) + " " + point(x, y - radius) + " " +
           point(x + radius, y) + " " + point(x, y + radius) + "\"" + fill(colour);
}

void Svg::label(double x, double y, const char* anchor, const std::string& text, const char* more) {
  text_ += "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\"" +
           more + ">" + escaped(text) + "</text>\n";
}

void Svg::title(double x, const std::string& text) {
  label(x, 30, "middle", text, " font-size=\"16\" font-weight=\"bold\"");
}

std::string axis_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace folio_cli
