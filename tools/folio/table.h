// A table of text for people: columns as wide as they must be, numbers to the right.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace folio_cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // Columns two spaces apart; no line ends with spaces. Without titles if all are empty.
  std::string text() const {
    std::vector<std::string> titles;
    bool has_titles = false;
    for (const Column& column : columns_) {
      titles.push_back(column.title);
      has_titles = has_titles || !column.title.empty();
    }
    std::vector<size_t> widths(columns_.size(), 0);
    const auto widen = [&widths](const std::vector<std::string>& cells) {
      for (size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], columns_of(cells[i]));
    };
    widen(titles);
    for (const auto& row : rows_) widen(row);
    std::string result = has_titles ? line(titles, widths) : "";
    for (const auto& row : rows_) result += line(row, widths);
    return result;
  }

 private:
  // Characters, not bytes.
  static size_t columns_of(const std::string& text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }

  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
    std::string result;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - columns_of(cells[i]), ' ');
      if (i != 0) result += "  ";
      result += columns_[i].align == Align::kLeft ? cells[i] + padding : padding + cells[i];
    }
    result.resize(result.find_last_not_of(' ') + 1);
    return result + "\n";
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "%.1f" and the like.
inline std::string number_text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace folio_cli
