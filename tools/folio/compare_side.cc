// folio compare-side: one process of `folio compare`, which measures one side once.
//
// Flow:    the library starts -> load -> inputs -> first run -> warm-up -> timed runs -> outputs.
// JSON:    one line on standard output: what was measured, or "error" and the stage of it. Outputs
//          go as bytes (wire.h) to the file descriptor that the parent made.
// Threads: one, and during the load another that watches the peak of anonymous memory.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/feeds.h"
#include "tools/folio/ort_peer.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/process_memory.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/timing.h"
#include "tools/folio/wire.h"

namespace folio_cli {

namespace {

class FolioPeer : public Peer {
 public:
  FolioPeer(const CommonOptions& common, const SessionSettings& settings) {
    load_library(common);
    options_ = std::make_unique<folio::SessionOptions>(make_session_options(settings));
  }

  std::string version() const override { return folio::version_string(); }

  void load(const std::string& model) override {
    session_ = std::make_unique<folio::Session>(model, *options_);
  }

  std::vector<Port> inputs() const override { return ports_of(session_->inputs()); }

  std::vector<std::string> output_names() const override {
    std::vector<std::string> names;
    for (const folio::ValueInfo& info : session_->outputs()) names.push_back(info.name);
    return names;
  }

  void set_inputs(std::vector<NamedValue> inputs) override {
    output_names_ = output_names();
    for (NamedValue& input : inputs) {
      input_values_.push_back(to_value(input.value));
      input_names_.push_back(std::move(input.name));
      input.value = HostValue();  // not held twice while measuring
    }
    for (size_t i = 0; i < input_names_.size(); ++i) {
      inputs_.emplace_back(input_names_[i], input_values_[i]);
    }
  }

  void run() override {
    outputs_.clear();
    outputs_ = session_->run(inputs_, output_names_);
  }

  void settle() override { session_->wait_packed(); }

  nlohmann::ordered_json pack_use() const override { return pack_use_json(*session_); }

  std::vector<HostValue> outputs() const override {
    std::vector<HostValue> values;
    for (const folio::Value& output : outputs_) values.push_back(from_value(output));
    return values;
  }

 private:
  std::unique_ptr<folio::SessionOptions> options_;
  std::unique_ptr<folio::Session> session_;
  std::vector<std::string> input_names_;
  std::vector<folio::Value> input_values_;
  std::vector<folio::Input> inputs_;
  std::vector<std::string> output_names_;
  std::vector<folio::Value> outputs_;
};

// Adds "anon_<when>" and so on to what is said; the first of them is returned.
long note_memory(const std::string& when, nlohmann::json* said) {
  const ProcessMemory memory = read_process_memory("self");
  (*said)["anon_" + when] = memory.anon;
  // Files on tmpfs are not among the kernel's Pss_File.
  (*said)["pss_file_" + when] = memory.pss - memory.pss_anon;
  (*said)["vm_pte_" + when] = read_status("self", "VmPTE");
  return memory.anon;
}

void load(const CompareSideCommand& command, Peer* peer, nlohmann::json* said) {
  PeakAnon peak(command.sample_us);
  const double start = wall_ms();
  peer->load(command.model);
  (*said)["load_ms"] = rounded(wall_ms() - start);
  peak.stop();
  peak.note(note_memory("load", said));
  (*said)["peak_anon_load"] = peak.peak();
}

void give_inputs(const CompareSideCommand& command, const InputFiles& files,
                 const RandomInputs& random, Peer* peer, nlohmann::json* said) {
  const std::vector<Port> ports = peer->inputs();
  (*said)["free_dims"] = nlohmann::json::array();
  if (!command.data_set.empty()) {
    peer->set_inputs(read_inputs(command.data_set, ports));
    return;
  }
  if (command.strict_names) random.check_names(ports);
  files.check_names(ports);
  std::vector<Port> made_up;
  std::vector<NamedValue> inputs;
  for (const Port& port : ports) {
    const bool has_file = files.has(port.name);
    inputs.push_back({port.name, has_file ? files.read(port) : random.make(port)});
    if (!has_file) made_up.push_back(port);
  }
  for (const std::string& name : random.free_dims(made_up)) (*said)["free_dims"].push_back(name);
  peer->set_inputs(std::move(inputs));
}

void run(const CompareSideCommand& command, Peer* peer, nlohmann::json* said) {
  const auto timed_run = [peer] {
    const double start = wall_ms();
    peer->run();
    return wall_ms() - start;
  };
  (*said)["first_run_ms"] = rounded(timed_run());
  peer->settle();
  for (uint32_t i = 0; i < command.warmup; ++i) peer->run();
  std::vector<double> times;
  for (uint32_t i = 0; i < command.iterations; ++i) times.push_back(timed_run());
  std::sort(times.begin(), times.end());
  (*said)["run_p50_ms"] = rounded(percentile(times, 5));
  (*said)["run_min_ms"] = rounded(times.front());
  note_memory("run", said);
}

void write_outputs(int file, const Peer& peer) {
  const std::string bytes = pack_values(peer.outputs());
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      throw CliError(kExitCannotRun, std::string("cannot pass on outputs: ") + strerror(errno));
    }
    done += static_cast<size_t>(written);
  }
}

void measure(const CommonOptions& common, const CompareSideCommand& command, nlohmann::json* said) {
  (*said)["stage"] = "start";
  const InputFiles files(command.inputs);
  const RandomInputs random(command.input);
  const double start = wall_ms();
  const std::unique_ptr<Peer> peer = command.ort.empty()
                                         ? make_folio_peer(common, command.session)
                                         : make_ort_peer(command.ort, command.session);
  (*said)["init_ms"] = rounded(wall_ms() - start);
  (*said)["version"] = peer->version();
  note_memory("init", said);
  (*said)["stage"] = "load";
  load(command, peer.get(), said);
  (*said)["stage"] = "inputs";
  give_inputs(command, files, random, peer.get(), said);
  (*said)["stage"] = "run";
  run(command, peer.get(), said);
  (*said)["pack"] = peer->pack_use();
  (*said)["output_names"] = peer->output_names();
  (*said)["stage"] = "outputs";
  if (command.outputs >= 0) write_outputs(command.outputs, *peer);
  (*said)["stage"] = "end";
}

}  // namespace

std::unique_ptr<Peer> make_folio_peer(const CommonOptions& common,
                                      const SessionSettings& settings) {
  return std::make_unique<FolioPeer>(common, settings);
}

int run_compare_side(const CommonOptions& common, const CompareSideCommand& command) {
  alarm(command.timeout_seconds);
  nlohmann::json said;
  const auto note = [&said](const std::string& message, ExitCode code) {
    said["error"] = one_line(message);
    said["exit_code"] = static_cast<int>(code);
  };
  try {
    measure(common, command, &said);
  } catch (const folio::Error& error) {
    note(error.what(), exit_code_of(error));
  } catch (const CliError& error) {
    note(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    note(error.what(), kExitCannotRun);
  }
  print_json(said, JsonForm::kOneLine);
  std::fflush(stdout);
  return kExitOk;
}

}  // namespace folio_cli
