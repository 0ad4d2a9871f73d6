// What a run is given: values from the files that --input names, and made-up ones for the others.
//
// Flow:    options -> FeedSource (before the load) -> Feeds of a session -> Session::run.
// Threads: one.
// Errors:  CliError that names the option; usage errors for names that the model lacks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/folio/cli.h"
#include "tools/folio/host_value.h"
#include "tools/folio/random_inputs.h"

namespace folio_cli {

// The files that --input names.
class InputFiles {
 public:
  // Each NAME=FILE.
  explicit InputFiles(const std::vector<std::string>& options);

  bool has(const std::string& name) const { return files_.count(name) != 0; }
  // The value of an input that has a file.
  HostValue read(const Port& port) const;
  // Each file's name is one of `inputs`, which the error lists, or of `others`.
  void check_names(const std::vector<Port>& inputs, const std::vector<Port>& others = {}) const;

 private:
  std::map<std::string, std::string> files_;  // by name
};

struct Feeds {
  std::vector<std::string> names;
  std::vector<folio::Value> values;
  std::vector<folio::Input> inputs;  // borrows from both

  Feeds() = default;
  Feeds(Feeds&&) = default;
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;
};

class FeedSource {
 public:
  FeedSource(const std::vector<std::string>& files, const InputOptions& made_up)
      : files_(files), random_(made_up) {}

  // Of every input, and of overridable initializers that have a file.
  Feeds make(const folio::Session& session) const;

 private:
  void check_names(const folio::Session& session) const;

  InputFiles files_;
  RandomInputs random_;
};

}  // namespace folio_cli
