// What folio doctor found: sections of rows, in the order in which they were added.
//
// JSON:    an object of objects for programs; titles and texts for people.
// Threads: one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace folio_cli {

class Findings {
 public:
  using Json = nlohmann::ordered_json;
  struct Row {
    std::string title;
    std::string text;
  };
  struct Section {
    std::string title;
    std::vector<Row> rows;
  };

  void begin(const std::string& key, const std::string& title) {
    key_ = key;
    sections_.push_back({title, {}});
  }
  void add(const std::string& key, const std::string& title, const Json& value,
           const std::string& text) {
    data_[key_][key] = value;
    sections_.back().rows.push_back({title, text});
  }
  void add(const std::string& key, const std::string& title, const std::string& text) {
    add(key, title, text, text);
  }
  void add_number(const std::string& key, const std::string& title, int64_t number) {
    add(key, title, number, std::to_string(number));
  }
  // A row of the list `key`.
  void append(const std::string& key, const std::string& title, const Json& value,
              const std::string& text) {
    data_[key_][key].push_back(value);
    sections_.back().rows.push_back({title, text});
  }
  void warn(const std::string& text) { warnings_.push_back(text); }

  Json data() const {
    Json all = data_;
    all["warnings"] = warnings_;
    return all;
  }
  const std::vector<Section>& sections() const { return sections_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::string key_;
  Json data_;
  std::vector<Section> sections_;
  std::vector<std::string> warnings_;
};

}  // namespace folio_cli
