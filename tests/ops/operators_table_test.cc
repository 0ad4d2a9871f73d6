// The table of operators in docs/operators.md: what the registry has, with the types and notes that
// the heads of the operators' files state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "core/ops/op_registry.h"

namespace folio {

#define FOLIO_OP_FILE(stem) void register_##stem(OpRegistry& registry);
#include "op_list.inc"
#undef FOLIO_OP_FILE

namespace {

constexpr std::string_view kBegin = "<!-- operators: begin, generated -->\n";
constexpr std::string_view kEnd = "<!-- operators: end -->\n";

std::string repository(const std::string& path) { return FOLIO_TESTS_DIR "/../" + path; }

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// What a file's head says after "// <label>:", on one line; a label begins with a capital.
std::string head_label(const std::string& text, std::string_view label) {
  std::istringstream lines(text);
  std::string found;
  bool inside = false;
  for (std::string line; std::getline(lines, line) && line.rfind("//", 0) == 0;) {
    const size_t colon = line.find(':');
    const std::string word = line.size() > 3 ? line.substr(3, colon - 3) : "";
    const bool labelled = colon != std::string::npos && word.find(' ') == std::string::npos &&
                          word[0] >= 'A' && word[0] <= 'Z';
    if (labelled) inside = word == label;
    if (!inside) continue;
    std::istringstream words(labelled ? line.substr(colon + 1) : line.substr(2));
    for (std::string part; words >> part;) found += (found.empty() ? "" : " ") + part;
  }
  if (!found.empty() && found.back() == '.') found.pop_back();
  return found;
}

// The operator names before the colon of a sentence such as "Neg, Abs: integers"; empty when it has
// none, or one that is no operator of the file.
std::vector<std::string> names_before_colon(const std::string& sentence,
                                            const std::set<std::string>& operators) {
  std::vector<std::string> names;
  std::istringstream list(sentence.substr(0, sentence.find(':')));
  for (std::string name; list >> name;) {
    if (name.back() == ',') name.pop_back();
    if (operators.count(name) == 0) return {};
    names.push_back(name);
  }
  return sentence.find(':') == std::string::npos ? std::vector<std::string>() : names;
}

// What a label's text says of one operator. Sentences that begin with operators' names are of these
// alone, instead of the others or, with "also", besides them.
std::string text_of(const std::string& text, const std::string& type,
                    const std::set<std::string>& operators) {
  std::string general;
  std::string own;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(". ", at), text.size());
    const std::string sentence = text.substr(at, end - at);
    at = end + 2;
    const std::vector<std::string> names = names_before_colon(sentence, operators);
    if (names.empty()) {
      general += (general.empty() ? "" : ". ") + sentence;
    } else if (std::find(names.begin(), names.end(), type) != names.end()) {
      own = sentence.substr(sentence.find(':') + 2);
    }
  }
  if (own.rfind("also ", 0) == 0) return general + "; " + own;
  return own.empty() ? general : own;
}

struct OperatorFile {
  std::string_view stem;
  OpRegistry registry;  // of its operators alone
};

std::vector<OperatorFile> operator_files() {
  std::vector<OperatorFile> files;
#define FOLIO_OP_FILE(stem) register_##stem(files.emplace_back(OperatorFile{#stem, {}}).registry);
#include "op_list.inc"
#undef FOLIO_OP_FILE
  return files;
}

struct Row {
  std::string_view stem;
  std::vector<std::pair<int, int>> versions;  // since, until
  std::string types;
  std::string notes;
};

using Rows = std::map<std::pair<std::string_view, std::string_view>, Row>;

// What the registry itself knows, before what the head says.
std::string notes_of(const OpDef& def, const std::string& head) {
  std::string notes;
  const auto add = [&](std::string_view note) {
    notes += notes.empty() ? "" : "; ";
    notes += note;
  };
  if (def.view_of >= 0) add("the result is a view");
  if (std::any_of(def.in_place.begin(), def.in_place.end(), [](int i) { return i >= 0; })) {
    add("caches may be written in place");
  }
  if (!head.empty()) add(head);
  return notes;
}

Rows all_rows() {
  Rows rows;
  for (const OperatorFile& file : operator_files()) {
    const std::string path = cat("core/ops/", file.stem, ".cc");
    const std::string text = file_text(repository(path));
    const std::string types = head_label(text, "Types");
    const std::string notes = head_label(text, "Notes");
    std::set<std::string> operators;
    for (const OpDef& def : file.registry.all()) operators.insert(std::string(def.type));
    for (const OpDef& def : file.registry.all()) {
      const std::string type(def.type);
      Row& row = rows[{def.domain, def.type}];
      EXPECT_TRUE(row.stem.empty() || row.stem == file.stem) << type << " is in two files";
      row.stem = file.stem;
      row.versions.emplace_back(def.since, def.until);
      row.types = text_of(types, type, operators);
      EXPECT_FALSE(row.types.empty()) << path << ": the head has no 'Types:' of " << type;
      row.notes = notes_of(def, text_of(notes, type, operators));
    }
  }
  return rows;
}

// "7 to 9, 11+": ranges that follow each other are one.
std::string versions_text(std::vector<std::pair<int, int>> versions) {
  std::sort(versions.begin(), versions.end());
  std::string text;
  for (size_t i = 0; i < versions.size(); ++i) {
    const int since = versions[i].first;
    while (i + 1 < versions.size() && versions[i].second + 1 == versions[i + 1].first) ++i;
    const int until = versions[i].second;
    if (!text.empty()) text += ", ";
    text += until == kLatest ? cat(since, "+")
                             : (until == since ? cat(since) : cat(since, " to ", until));
  }
  return text;
}

// Operators that only passes make are no part of what a model may hold.
bool is_private(std::string_view domain) { return domain.rfind("folio", 0) == 0; }

std::string table_of(const Rows& rows) {
  std::string text = "| operator | domain | versions | types | notes |\n|---|---|---|---|---|\n";
  for (const auto& [name, row] : rows) {
    if (is_private(name.first)) continue;
    const std::string_view domain = name.first.empty() ? "ai.onnx" : name.first;
    text += cat("| ", name.second, " | ", domain, " | ", versions_text(row.versions), " | ",
                row.types, " | ", row.notes, row.notes.empty() ? "|\n" : " |\n");
  }
  return text;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream first(a);
  std::istringstream second(b);
  std::string in_docs;
  std::string expected;
  do {
    in_docs.clear();
    expected.clear();
    std::getline(first, in_docs);
    std::getline(second, expected);
  } while (in_docs == expected && (first || second));
  return "the page has\n  " + in_docs + "\nexpected\n  " + expected;
}

TEST(OperatorsTable, DocumentsTheRegistry) {
  const std::string expected = table_of(all_rows());
  const std::string path = repository("docs/operators.md");
  const std::string page = file_text(path);
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path << " lacks " << kBegin;
  ASSERT_NE(end, std::string::npos) << path << " lacks " << kEnd;
  const size_t from = begin + kBegin.size();
  ASSERT_LE(from, end);
  if (std::getenv("FOLIO_WRITE_DOCS")) {
    std::ofstream(path) << page.substr(0, from) << expected << page.substr(end);
    return;
  }
  const std::string found = page.substr(from, end - from);
  EXPECT_TRUE(found == expected) << first_difference(found, expected)
                                 << "\nrun this test with FOLIO_WRITE_DOCS=1 to write it";
}

TEST(OperatorsTable, FilesHaveAllOperatorsOfTheRegistry) {
  size_t count = 0;
  for (const OperatorFile& file : operator_files()) {
    EXPECT_FALSE(file.registry.all().empty()) << file.stem;
    for (const OpDef& def : file.registry.all()) {
      EXPECT_NE(op_registry().find(def.domain, def.type, def.since), nullptr) << def.type;
      ++count;
    }
  }
  EXPECT_EQ(count, op_registry().all().size());
}

TEST(OperatorsTable, LabelsOfAHeadEndAtTheNext) {
  const std::string head =
      "// Name: what it is.\n//\n// Types:  float;\n//         double.\n// Errors: none\n"
      "#include <x>\n// Notes:  below the head\n";
  EXPECT_EQ(head_label(head, "Types"), "float; double");
  EXPECT_EQ(head_label(head, "Notes"), "");
}

TEST(OperatorsTable, SentencesOfAnOperatorAreItsOwn) {
  const std::set<std::string> operators = {"Abs", "Neg", "Exp", "Not"};
  const std::string text = "x: float. Abs, Neg: also integers. Not: bool";
  EXPECT_EQ(text_of(text, "Exp", operators), "x: float");
  EXPECT_EQ(text_of(text, "Neg", operators), "x: float; also integers");
  EXPECT_EQ(text_of(text, "Not", operators), "bool");
  EXPECT_EQ(text_of("Not: bool", "Exp", operators), "");
}

TEST(OperatorsTable, VersionsThatFollowEachOtherAreOneRange) {
  EXPECT_EQ(versions_text({{11, kLatest}, {1, 5}, {6, 9}}), "1 to 9, 11+");
  EXPECT_EQ(versions_text({{1, 1}, {10, 10}}), "1, 10");
}

}  // namespace
}  // namespace folio
