// Generates tokens with a language model in a folder as onnxruntime-genai's builder lays it out:
// model.onnx (GroupQueryAttention, past and present caches) and genai_config.json.
//
//   generate FOLDER [--prompt 1,2,3] [--new 64] [--max-length 4096] [--threads 0] [--copy]
//            [--temperature 0.8] [--top-k 40] [--seed 1]
//
// Tokens go in and come out as numbers: a tokenizer is the caller's. Each cache is one tensor of
// --max-length positions that is bound both as past and as present, so that a step writes one row
// of it and copies nothing; --copy lets each step make new caches instead. Without --temperature
// the likeliest token is taken.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <folio/folio.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Options {
  std::string folder;
  std::vector<std::int64_t> prompt = {1};
  std::int64_t new_tokens = 64;
  std::int64_t max_length = 0;  // 0: as the prompt and the new tokens need
  std::uint32_t threads = 0;
  bool copy = false;
  double temperature = 0;
  size_t top_k = 0;  // 0: all
  std::uint64_t seed = 1;
};

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> out;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    out.push_back(std::strtoll(at, &end, 10));
    if (end == at || (*end != ',' && *end != '\0'))
      throw std::runtime_error("not numbers: " + text);
    at = *end == ',' ? end + 1 : end;
  }
  if (out.empty()) throw std::runtime_error("--prompt is empty");
  return out;
}

constexpr const char* kUsage =
    "usage: generate FOLDER [--prompt 1,2,3] [--new 64] [--max-length 4096] [--threads 0] "
    "[--copy]\n"
    "                       [--temperature 0.8] [--top-k 40] [--seed 1]\n";

void set(const std::string& name, const std::string& value, Options* options) {
  if (name == "--prompt") {
    options->prompt = numbers(value);
  } else if (name == "--new") {
    options->new_tokens = std::stoll(value);
  } else if (name == "--max-length") {
    options->max_length = std::stoll(value);
  } else if (name == "--threads") {
    options->threads = static_cast<std::uint32_t>(std::stoul(value));
  } else if (name == "--temperature") {
    options->temperature = std::stod(value);
  } else if (name == "--top-k") {
    options->top_k = std::stoul(value);
  } else if (name == "--seed") {
    options->seed = std::stoull(value);
  } else {
    throw std::runtime_error("unknown option " + name);
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--copy") {
      options.copy = true;
      continue;
    }
    if (name.rfind("--", 0) != 0 && options.folder.empty()) {
      options.folder = name;
      continue;
    }
    if (++i >= argc) throw std::runtime_error(name + " needs a value");
    try {
      set(name, argv[i], &options);
    } catch (const std::logic_error&) {  // of std::stoll and the like, which says no more
      throw std::runtime_error(name + " needs a number, got '" + argv[i] + "'");
    }
  }
  if (options.folder.empty()) throw std::runtime_error("needs the folder of a model");
  const auto needed = static_cast<std::int64_t>(options.prompt.size()) + options.new_tokens;
  options.max_length = std::max(options.max_length, needed);
  return options;
}

// What genai_config.json says of a decoder.
struct Config {
  std::string model;
  std::string input_ids, attention_mask, position_ids, logits;
  std::vector<std::string> past, present;  // by layer: keys, values
  std::vector<std::int64_t> end_tokens;

  static Config read(const std::string& folder) {
    std::ifstream file(folder + "/genai_config.json");
    if (!file) throw std::runtime_error("cannot read " + folder + "/genai_config.json");
    const nlohmann::json model = nlohmann::json::parse(file).at("model");
    const nlohmann::json& decoder = model.at("decoder");
    const nlohmann::json& in = decoder.at("inputs");
    const nlohmann::json& out = decoder.at("outputs");
    Config config;
    config.model = folder + "/" + decoder.value("filename", "model.onnx");
    config.input_ids = in.value("input_ids", "input_ids");
    config.attention_mask = in.value("attention_mask", "attention_mask");
    config.position_ids = in.value("position_ids", "");
    config.logits = out.value("logits", "logits");
    for (int layer = 0; layer < decoder.at("num_hidden_layers").get<int>(); ++layer) {
      config.past.push_back(named(in, "past_key_names", layer));
      config.past.push_back(named(in, "past_value_names", layer));
      config.present.push_back(named(out, "present_key_names", layer));
      config.present.push_back(named(out, "present_value_names", layer));
    }
    if (model.contains("eos_token_id")) {
      const nlohmann::json& end = model.at("eos_token_id");
      if (end.is_array()) config.end_tokens = end.get<std::vector<std::int64_t>>();
      if (end.is_number()) config.end_tokens = {end.get<std::int64_t>()};
    }
    return config;
  }

 private:
  // "past_key_values.%d.key" of layer 3 is "past_key_values.3.key".
  static std::string named(const nlohmann::json& names, const char* key, int layer) {
    std::string text = names.at(key).get<std::string>();
    const size_t at = text.find("%d");
    if (at == std::string::npos) throw std::runtime_error(text + " has no %d");
    return text.replace(at, 2, std::to_string(layer));
  }
};

folio::Value int64_tensor(const folio::Dims& dims, const std::vector<std::int64_t>& elements) {
  folio::Value value = folio::Value::tensor(FOLIO_INT64, dims);
  std::copy(elements.begin(), elements.end(), value.mutable_as<std::int64_t>());
  return value;
}

class Decoder {
 public:
  Decoder(const Config& config, const Options& options, folio::Session& session)
      : config_(config), copy_(options.copy), session_(session), binding_(session) {
    for (size_t i = 0; i < config.past.size(); ++i) make_cache(i, options.max_length);
    binding_.bind_output(config_.logits);
  }

  // The logits of the last of these tokens.
  std::vector<float> step(const std::vector<std::int64_t>& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    length_ += count;
    binding_.bind_input(config_.input_ids, int64_tensor({1, count}, tokens));
    const std::vector<std::int64_t> ones(static_cast<size_t>(length_), 1);
    binding_.bind_input(config_.attention_mask, int64_tensor({1, length_}, ones));
    if (!config_.position_ids.empty()) {
      std::vector<std::int64_t> positions;
      for (std::int64_t at = length_ - count; at < length_; ++at) positions.push_back(at);
      binding_.bind_input(config_.position_ids, int64_tensor({1, count}, positions));
    }
    session_.run(binding_);
    if (copy_) {
      for (size_t i = 0; i < config_.past.size(); ++i) {
        binding_.bind_input(config_.past[i], binding_.output(i));
      }
    }
    const folio::Value logits = binding_.output(config_.past.size());
    if (logits.type() != FOLIO_FLOAT) throw std::runtime_error("the logits are not float32");
    const auto words = static_cast<size_t>(logits.dims().back());
    const float* last = logits.as<float>() + logits.element_count() - words;
    return {last, last + words};
  }

  std::uint64_t cache_bytes() const { return cache_bytes_; }

 private:
  void make_cache(size_t i, std::int64_t max_length) {
    for (const folio::ValueInfo& info : session_.inputs()) {
      if (info.name != config_.past[i]) continue;
      if (info.dims.size() != 4) throw std::runtime_error(info.name + " has not 4 dims");
      const folio::Dims dims = {1, info.dims[1], copy_ ? 0 : max_length, info.dims[3]};
      folio::Value cache = folio::Value::tensor(info.type, dims);
      std::memset(cache.mutable_data(), 0, cache.bytes());
      cache_bytes_ += cache.bytes();
      binding_.bind_input(config_.past[i], cache);
      if (copy_) {
        binding_.bind_output(config_.present[i]);
      } else {
        binding_.bind_output(config_.present[i], cache);
      }
      return;
    }
    throw std::runtime_error("the model has no input " + config_.past[i]);
  }

  const Config& config_;
  bool copy_;
  folio::Session& session_;
  folio::IoBinding binding_;
  std::int64_t length_ = 0;
  std::uint64_t cache_bytes_ = 0;
};

std::int64_t pick(const std::vector<float>& logits, const Options& options,
                  std::mt19937_64& random) {
  if (options.temperature <= 0) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  std::vector<std::int64_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  const auto better = [&](std::int64_t a, std::int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  };
  const size_t kept = options.top_k == 0 ? order.size() : std::min(options.top_k, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    better);
  std::vector<double> weights;
  const double best = logits[static_cast<size_t>(order[0])];
  for (size_t i = 0; i < kept; ++i) {
    weights.push_back(
        std::exp((logits[static_cast<size_t>(order[i])] - best) / options.temperature));
  }
  return order[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random)];
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void generate(const Options& options) {
  const Config config = Config::read(options.folder);
  auto start = std::chrono::steady_clock::now();
  folio::SessionOptions session_options;
  if (options.threads != 0) session_options.threads(options.threads);
  folio::Session session(config.model, session_options);
  const double load = seconds_since(start);
  Decoder decoder(config, options, session);
  std::mt19937_64 random(options.seed);

  start = std::chrono::steady_clock::now();
  std::int64_t token = pick(decoder.step(options.prompt), options, random);
  const double first = seconds_since(start);
  std::printf("tokens:");
  start = std::chrono::steady_clock::now();
  std::int64_t made = 1;
  for (;; ++made) {
    std::printf(" %lld", static_cast<long long>(token));
    std::fflush(stdout);
    const auto& ends = config.end_tokens;
    if (made == options.new_tokens || std::find(ends.begin(), ends.end(), token) != ends.end())
      break;
    token = pick(decoder.step({token}), options, random);
  }
  const double rest = seconds_since(start);
  std::printf("\n\nload         %10.1f ms\n", load * 1e3);
  std::printf("first token  %10.1f ms  (%zu tokens, %.1f tokens/s)\n", first * 1e3,
              options.prompt.size(), static_cast<double>(options.prompt.size()) / first);
  if (made > 1) {
    std::printf("decode       %10.1f ms  a token, %.1f tokens/s\n",
                rest * 1e3 / static_cast<double>(made - 1), static_cast<double>(made - 1) / rest);
  }
  std::printf("caches       %10.3f MB  %s\n\n%s", static_cast<double>(decoder.cache_bytes()) / 1e6,
              options.copy ? "made anew by each step" : "written in place",
              folio::Env().memory_report().text().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n%s", error.what(), kUsage);
    return 2;
  }
  try {
    generate(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
}
