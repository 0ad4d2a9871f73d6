#include "tools/folio/feeds.h"

#include <filesystem>
#include <set>

#include "tools/folio/npy.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

InputFiles::InputFiles(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    const auto [name, file] = split_assignment("--input", option, SplitAt::kFirst);
    if (!files_.emplace(name, file).second) {
      throw CliError(kExitUsage, "--input " + name + " is given twice");
    }
  }
}

HostValue InputFiles::read(const Port& port) const {
  const std::string& path = files_.at(port.name);
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") return read_npy(path, port.type);
  if (extension == ".pb") return read_pb(path, port.kind);
  throw CliError(kExitUsage, "--input " + port.name + "=" + path + ": neither .npy nor .pb");
}

void InputFiles::check_names(const std::vector<Port>& inputs,
                             const std::vector<Port>& others) const {
  std::vector<std::string> names;
  for (const Port& port : inputs) names.push_back(port.name);
  std::set<std::string> known(names.begin(), names.end());
  for (const Port& port : others) known.insert(port.name);
  for (const auto& file : files_) {
    if (known.count(file.first) != 0) continue;
    throw CliError(kExitUsage,
                   "--input " + file.first + ": the model's inputs are: " + list_text(names));
  }
}

void FeedSource::check_names(const folio::Session& session) const {
  const std::vector<Port> inputs = ports_of(session.inputs());
  random_.check_names(inputs);
  files_.check_names(inputs, ports_of(session.overridable_initializers()));
}

Feeds FeedSource::make(const folio::Session& session) const {
  check_names(session);
  Feeds feeds;
  const auto add = [&](const folio::ValueInfo& info, bool may_make_up) {
    const Port port = port_of(info);
    const bool has_file = files_.has(info.name);
    if (!has_file && !may_make_up) return;
    // One at a time: what is measured has no second copy of all of them.
    feeds.values.push_back(to_value(has_file ? files_.read(port) : random_.make(port)));
    feeds.names.push_back(info.name);
  };
  for (const folio::ValueInfo& info : session.inputs()) add(info, true);
  for (const folio::ValueInfo& info : session.overridable_initializers()) add(info, false);
  for (size_t i = 0; i < feeds.names.size(); ++i) {
    feeds.inputs.emplace_back(feeds.names[i], feeds.values[i]);
  }
  return feeds;
}

}  // namespace folio_cli
