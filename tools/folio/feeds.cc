#include "tools/folio/feeds.h"

#include <filesystem>
#include <set>

#include "tools/folio/npy.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

HostValue read_input(const std::string& path, const folio::ValueInfo& info) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") return read_npy(path, info.type);
  if (extension == ".pb") return read_pb(path, info.kind);
  throw CliError(kExitUsage, "--input " + info.name + "=" + path + ": neither .npy nor .pb");
}

}  // namespace

FeedSource::FeedSource(const std::vector<std::string>& files, const InputOptions& made_up)
    : random_(made_up) {
  for (const std::string& option : files) {
    const auto [name, file] = split_assignment("--input", option, SplitAt::kFirst);
    if (!files_.emplace(name, file).second) {
      throw CliError(kExitUsage, "--input " + name + " is given twice");
    }
  }
}

void FeedSource::check_names(const folio::Session& session) const {
  const std::vector<folio::ValueInfo> inputs = session.inputs();
  random_.check_names(ports_of(inputs));
  std::vector<std::string> names;
  for (const folio::ValueInfo& info : inputs) names.push_back(info.name);
  std::set<std::string> known(names.begin(), names.end());
  for (const folio::ValueInfo& info : session.overridable_initializers()) known.insert(info.name);
  for (const auto& file : files_) {
    if (known.count(file.first) != 0) continue;
    throw CliError(kExitUsage,
                   "--input " + file.first + ": the model's inputs are: " + list_text(names));
  }
}

Feeds FeedSource::make(const folio::Session& session) const {
  check_names(session);
  Feeds feeds;
  const auto add = [&](const folio::ValueInfo& info, bool may_make_up) {
    const auto file = files_.find(info.name);
    const bool has_file = file != files_.end();
    if (!has_file && !may_make_up) return;
    // One at a time: what is measured has no second copy of all of them.
    feeds.values.push_back(
        to_value(has_file ? read_input(file->second, info) : random_.make(port_of(info))));
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
