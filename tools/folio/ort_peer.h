// ONNX Runtime as a Peer, over its C API, opened at run time.
//
// Flow:    dlopen -> OrtGetApiBase -> the slots of ort_api.h.
// Owns:    env, options, session, values; the library stays loaded.
// Errors:  CliError with ONNX Runtime's message.
#pragma once

#include <memory>
#include <string>

#include "tools/folio/peer.h"

namespace folio_cli {

// `settings.config` are session config entries of ONNX Runtime, and `graph_optimization_level` (0,
// 1, 2 or 99), which it has a function for; all else is at its defaults.
std::unique_ptr<Peer> make_ort_peer(const std::string& library, const SessionSettings& settings);

}  // namespace folio_cli
