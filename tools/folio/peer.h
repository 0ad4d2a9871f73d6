// A runtime that `folio compare` measures: Folio or ONNX Runtime behind the same calls.
//
// Flow:    made (the library starts) -> load -> inputs -> set_inputs -> run ... -> outputs.
// Owns:    the session, its inputs, and the outputs of the last run.
// Threads: one.
// Errors:  CliError and folio::Error.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/folio/cli.h"
#include "tools/folio/host_value.h"
#include "tools/folio/port.h"
#include "tools/folio/test_layout.h"

namespace folio_cli {

class Peer {
 public:
  Peer() = default;
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  virtual std::string version() const = 0;
  virtual void load(const std::string& model) = 0;
  virtual std::vector<Port> inputs() const = 0;
  virtual std::vector<std::string> output_names() const = 0;
  virtual void set_inputs(std::vector<NamedValue> inputs) = 0;
  virtual void run() = 0;
  // Waits for what goes on behind the first runs.
  virtual void settle() {}
  // As pack_use_json has it; null: the runtime has no such thing.
  virtual nlohmann::ordered_json pack_use() const { return nullptr; }
  virtual std::vector<HostValue> outputs() const = 0;  // in the order of output_names
};

std::unique_ptr<Peer> make_folio_peer(const CommonOptions& common, const SessionSettings& settings);

}  // namespace folio_cli
