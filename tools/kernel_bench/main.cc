// kernel_bench: times the kernels of every level that this machine can run, as a table to paste
// into a commit message.
//
// Usage:   kernel_bench [gemm|bytes|depthwise|blocks|rows] [seconds per figure, default 0.5]
// Figures: the best of all calls; GF/s and GOP/s for products (2 m n k / t), ns per element for the
//          others.
// Levels
//          take turns call by call, so that a noisy neighbour hits all alike; the clock is the
//          thread's CPU time, which stands still while another process has the core.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"

namespace {

using folio::KernelLevel;

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Level {
  const char* name;
  FolioKernels kernels;
};

std::vector<Level> usable_levels() {
  std::vector<Level> levels;
  FolioKernels kernels = {};
  for (const KernelLevel& level : folio::kernel_levels()) {
    if (!folio::level_usable(level, folio::cpu_bits())) continue;
    level.fill(&kernels);
    levels.push_back({level.name, kernels});
  }
  return levels;
}

// 64-byte aligned floats in [-1, 1).
struct Floats {
  explicit Floats(size_t count)
      : data(static_cast<float*>(std::aligned_alloc(64, (count * 4 + 63) / 64 * 64))) {
    uint32_t state = 12345;
    for (size_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      data.get()[i] = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    }
  }
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  float* get() const { return data.get(); }
  std::unique_ptr<float, Free> data;
};

// Calls for about 100 microseconds, against which the clock's own 0.3 do not count.
int calls_per_sample(const std::function<void()>& body) {
  body();
  const double begin = cpu_seconds();
  body();
  return std::max(1, static_cast<int>(100e-6 / (cpu_seconds() - begin)));
}

// Least seconds of each body, the bodies taking turns.
std::vector<double> least(const std::vector<std::function<void()>>& bodies, double seconds) {
  std::vector<double> result(bodies.size(), std::numeric_limits<double>::infinity());
  std::vector<int> calls;
  for (const auto& body : bodies) calls.push_back(calls_per_sample(body));
  const double end = cpu_seconds() + seconds;
  for (int round = 0; round < 3 || cpu_seconds() < end; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const double begin = cpu_seconds();
      for (int call = 0; call < calls[i]; ++call) bodies[i]();
      result[i] = std::min(result[i], (cpu_seconds() - begin) / calls[i]);
    }
  }
  return result;
}

void print_head(const char* what, const std::vector<std::string>& columns) {
  std::printf("%-24s", what);
  for (const std::string& column : columns) std::printf(" %18s", column.c_str());
  std::printf("\n");
}

// ref takes seconds for the large products and is no rival.
std::vector<Level> rivals(const std::vector<Level>& all) {
  return {all.begin() + (all.size() > 1 ? 1 : 0), all.end()};
}

void print_levels(const char* what, const std::vector<Level>& levels) {
  std::vector<std::string> columns;
  for (const Level& level : levels) columns.push_back(level.name);
  print_head(what, columns);
}

// Billions of operations a second of each body, all products of m x n x k.
void print_products(int64_t m, int64_t n, int64_t k, const std::string& note,
                    const std::vector<std::function<void()>>& bodies, double seconds) {
  const double work = 2e-9 * static_cast<double>(m) * static_cast<double>(n * k);
  std::printf(
      "%-24s",
      (std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + note).c_str());
  for (const double t : least(bodies, seconds)) std::printf(" %18.1f", work / t);
  std::printf("\n");
}

// Signed weights of so many bits, evenly distributed, or of 8 that are sums of six such numbers, as
// trained ones nearly are.
enum class WeightBits { kSeven, kEight, kEightAsTrained };

void fill_weights(WeightBits bits, size_t count, int8_t* to) {
  uint32_t state = 54321;
  const auto next = [&state](int32_t least, int32_t most) {
    state = state * 1664525u + 1013904223u;
    return least + static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(most - least + 1));
  };
  for (size_t i = 0; i < count; ++i) {
    int32_t w = bits == WeightBits::kSeven ? next(-64, 64) : next(-128, 127);
    if (bits == WeightBits::kEightAsTrained) { /* a standard deviation of 30 */
      w = 0;
      for (int part = 0; part < 6; ++part) w += next(-21, 21);
      w = std::clamp(w, -127, 127);
    }
    to[i] = static_cast<int8_t>(w);
  }
}

// Unsigned bytes times packed signed ones, to bytes.
void bench_bytes(const std::vector<Level>& levels, WeightBits bits, double seconds) {
  print_levels(bits == WeightBits::kSeven   ? "gemm_u8 GOP/s, 7 bits"
               : bits == WeightBits::kEight ? "gemm_u8 GOP/s, 8 bits"
                                            : "gemm_u8 GOP/s, trained",
               levels);
  const int64_t shapes[][3] = {{512, 512, 512},  {1024, 1024, 1024}, {128, 3072, 768},
                               {128, 768, 3072}, {16, 768, 768},     {1, 4096, 4096},
                               {49, 512, 4608},  {784, 128, 1152},   {3136, 64, 576},
                               {3136, 256, 64},  {196, 256, 1024},   {196, 1024, 256}};
  for (const auto& [m, n, k] : shapes) {
    Floats a(static_cast<size_t>(m * k / 4 + 1));
    Floats b(static_cast<size_t>((n + 15) / 16 * 16 * (k + 3) / 4 + n));
    fill_weights(bits, static_cast<size_t>(n * k), reinterpret_cast<int8_t*>(b.get()));
    Floats scale(static_cast<size_t>(n));
    Floats c(static_cast<size_t>(m * n / 4 + 1));
    FolioGemmU8 args = {};
    args.m = m;
    args.n = n;
    args.k = k;
    args.a = reinterpret_cast<const uint8_t*>(a.get());
    args.a_row_stride = k;
    args.b = b.get();
    args.sums.to = kFolioToByte;
    args.sums.scale = scale.get();
    args.sums.hi = 255;
    args.c = c.get();
    args.c_row_stride = n;
    std::vector<std::function<void()>> bodies;
    for (const Level& level : levels) {
      bodies.push_back([args, &level] { level.kernels.gemm_u8(&args); });
    }
    print_products(m, n, k, "", bodies, seconds);
  }
}

// Lines of 56 pixels under filters of 3 x 3 over one channel each, to bytes.
void bench_depthwise(const std::vector<Level>& levels, WeightBits bits, double seconds) {
  constexpr int64_t kPixels = 56;
  constexpr int64_t kTaps = 9;
  print_levels(bits == WeightBits::kSeven ? "depthwise_u8 GOP/s, 7 bits" : "depthwise_u8, 8 bits",
               levels);
  for (const int64_t channels : {32, 144, 384}) {
    for (const int64_t step : {1, 2}) {
      const int64_t width = (kPixels - 1) * step + 3;
      Floats image(static_cast<size_t>(3 * width * channels / 4));
      std::vector<const uint8_t*> x;
      for (int64_t i = 0; i < 3 * width; ++i) {
        x.push_back(reinterpret_cast<const uint8_t*>(image.get()) + i * channels);
      }
      Floats b(static_cast<size_t>((channels + 15) / 16 * 48));
      fill_weights(bits, static_cast<size_t>((channels + 15) / 16 * 192),
                   reinterpret_cast<int8_t*>(b.get()));
      Floats scale(static_cast<size_t>(channels));
      Floats y(static_cast<size_t>(kPixels * channels / 4));
      FolioDepthwiseU8 args = {};
      args.lines = 1;
      args.pixels = kPixels;
      args.channels = channels;
      args.sets = 1;
      args.rows = args.columns = 3;
      args.step = step;
      args.dilation = 1;
      args.x = x.data();
      args.x_row_stride = args.x_line_stride = width;
      args.b = b.get();
      args.sums.to = kFolioToByte;
      args.sums.scale = scale.get();
      args.sums.hi = 255;
      args.y = y.get();
      args.y_row_stride = channels;
      std::vector<std::function<void()>> bodies;
      for (const Level& level : levels) {
        bodies.push_back([args, &level] { level.kernels.depthwise_u8(&args); });
      }
      print_products(kPixels, channels, kTaps, " s" + std::to_string(step), bodies, seconds);
    }
  }
}

// Rounded rows times weights in blocks of 4 and 8 bits.
void bench_blocks(const std::vector<Level>& levels, double seconds) {
  print_levels("block_dots_s8 GOP/s", levels);
  const int64_t shapes[][5] = {{1, 1024, 1024, 32, 4},    {1, 4096, 4096, 32, 4},
                               {16, 4096, 4096, 32, 4},   {128, 4096, 4096, 32, 4},
                               {128, 3072, 3072, 32, 4},  {128, 3072, 8192, 32, 4},
                               {1024, 3072, 3072, 32, 4}, {128, 4096, 4096, 64, 4},
                               {128, 4096, 4096, 128, 4}, {128, 4096, 4096, 32, 8}};
  for (const auto& [m, n, k, block, width] : shapes) {
    const auto bits = static_cast<int32_t>(width);
    const int64_t blocks = k / block;
    const int64_t row = folio_block_row_bytes(blocks, block, bits);
    Floats codes(static_cast<size_t>(n * k * bits / 32));
    Floats scales(static_cast<size_t>(n * blocks));
    Floats x(static_cast<size_t>(k));
    Floats rows(static_cast<size_t>(m * row / 4));
    Floats scratch(static_cast<size_t>(folio_block_scratch_bytes(blocks, block, bits, 1, 1) / 4));
    Floats y(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m; ++i) {
      levels.front().kernels.block_round_f32(k, block, bits, x.get(), rows.get() + i * row / 4);
    }
    FolioBlockDotsS8 args = {};
    args.w.n = n;
    args.w.k = k;
    args.w.block = block;
    args.w.bits = bits;
    args.w.codes = codes.get();
    args.w.scales = scales.get();
    args.m = m;
    args.a = rows.get();
    args.scratch = scratch.get();
    args.y = y.get();
    args.y_row_stride = n;
    std::vector<std::function<void()>> bodies;
    for (const Level& level : levels) {
      bodies.push_back([args, &level] { level.kernels.block_dots_s8(&args); });
    }
    const std::string note = " b" + std::to_string(block) + (bits == 8 ? " 8 bits" : "");
    print_products(m, n, k, note, bodies, seconds);
  }
}

// A level and how it multiplies floats.
struct FloatRival {
  std::string name;
  const FolioKernels* kernels;
  int32_t precision;
};

std::vector<FloatRival> float_rivals(const std::vector<Level>& levels) {
  std::vector<FloatRival> all;
  for (const Level& level : levels) all.push_back({level.name, &level.kernels, kFolioChain});
  // What the last level has from those before it is in their columns.
  const std::pair<int32_t, const char*> parts[] = {
      {kFolioHighest, "highest"}, {kFolioHigh, "high"}, {kFolioMedium, "medium"}};
  for (const auto& [precision, name] : parts) {
    if (levels.empty() || !folio_multiplies_parts(&levels.back().kernels, precision)) continue;
    all.push_back({name, &levels.back().kernels, precision});
  }
  return all;
}

void bench_gemm(const std::vector<Level>& levels, double seconds) {
  const std::vector<FloatRival> all = float_rivals(levels);
  std::vector<std::string> columns;
  for (const FloatRival& rival : all) columns.push_back(rival.name);
  print_head("gemm_f32 GF/s", columns);
  const int64_t shapes[][3] = {
      {512, 512, 512}, {1024, 1024, 1024}, {128, 3072, 768}, {128, 768, 3072}, {128, 768, 768},
      {1, 4096, 4096}, {4, 4096, 4096},    {8, 4096, 4096},  {16, 768, 768},   {32, 768, 768},
      {49, 512, 2048}, {49, 2048, 512},    {196, 1024, 256}, {196, 256, 1024}, {784, 512, 128},
      {784, 128, 512}, {3136, 256, 64},    {3136, 64, 256},  {128, 128, 64},   {128, 64, 128},
      {64, 16, 576},   {256, 128, 1152}};
  for (const auto& [m, n, k] : shapes) {
    Floats a(static_cast<size_t>(m * k));
    Floats b(static_cast<size_t>((n + 15) / 16 * 16 * k));
    Floats c(static_cast<size_t>(m * n));
    FolioGemmF32 args = {};
    args.m = m;
    args.n = n;
    args.k = k;
    args.a = a.get();
    args.a_row_stride = k;
    args.a_col_stride = 1;
    args.b = b.get();
    args.c = c.get();
    args.c_row_stride = n;
    args.alpha = 1;
    std::vector<std::function<void()>> bodies;
    for (const FloatRival& rival : all) {
      args.precision = rival.precision;
      bodies.push_back([args, &rival] { rival.kernels->gemm_f32(&args); });
    }
    print_products(m, n, k, "", bodies, seconds);
  }
}

using RowFn = std::function<void(const FolioKernels&, const float*, float*)>;

void bench_rows(const std::vector<Level>& levels, double seconds) {
  constexpr int64_t kRows = 128;
  constexpr int64_t kColumns = 768;
  constexpr int64_t kCount = kRows * kColumns;
  std::vector<std::pair<std::string, RowFn>> cases;
  const std::pair<const char*, int> unary[] = {
      {"exp", kFolioExp},          {"log", kFolioLog},
      {"tanh", kFolioTanh},        {"sigmoid", kFolioSigmoid},
      {"erf", kFolioErf},          {"relu", kFolioRelu},
      {"gelu_erf", kFolioGeluErf}, {"gelu_tanh", kFolioGeluTanh},
      {"softplus", kFolioSoftplus}};
  for (const auto& [name, function] : unary) {
    cases.emplace_back(name, [f = function](const FolioKernels& k, const float* x, float* y) {
      k.unary_f32[f](kCount, x, y);
    });
  }
  const auto by_row = [](auto body) -> RowFn {
    return [body](const FolioKernels& k, const float* x, float* y) {
      for (int64_t i = 0; i < kCount; i += kColumns) body(k, x + i, y + i);
    };
  };
  cases.emplace_back("add", [](const FolioKernels& k, const float* x, float* y) {
    k.binary_f32[kFolioAdd](kCount, x, 1, x, 1, y);
  });
  cases.emplace_back("softmax rows", by_row([](const FolioKernels& k, const float* x, float* y) {
                       k.softmax_f32(1, kColumns, x, y);
                     }));
  cases.emplace_back("layer_norm rows", by_row([](const FolioKernels& k, const float* x, float* y) {
                       k.layer_norm_f32(kColumns, x, x, x, 1e-5f, y, nullptr, nullptr);
                     }));
  cases.emplace_back("max rows", by_row([](const FolioKernels& k, const float* x, float* y) {
                       *y = k.max_f32(kColumns, x);
                     }));
  cases.emplace_back("f32_to_f16", [](const FolioKernels& k, const float* x, float* y) {
    k.f32_to_f16(kCount, x, y);
  });
  cases.emplace_back("transpose", [](const FolioKernels& k, const float* x, float* y) {
    k.transpose_b32(kRows, kColumns, x, kColumns, y, kRows);
  });
  cases.emplace_back("pack", [](const FolioKernels& k, const float* x, float* y) {
    k.pack_f32p16(kRows, kColumns, x, kColumns, 1, y);
  });
  cases.emplace_back("pack transposed", [](const FolioKernels& k, const float* x, float* y) {
    k.pack_f32p16(kRows, kColumns, x, 1, kRows, y);
  });

  std::vector<std::string> columns;
  for (const Level& level : levels) columns.push_back(level.name);
  print_head("ns per element, 128x768", columns);
  Floats x(kCount);
  Floats y(kCount);
  for (const auto& [name, body] : cases) {
    std::vector<std::function<void()>> bodies;
    for (const Level& level : levels) {
      bodies.push_back([&, fn = body] { fn(level.kernels, x.get(), y.get()); });
    }
    std::printf("%-24s", name.c_str());
    for (const double t : least(bodies, seconds)) {
      std::printf(" %18.3f", 1e9 * t / kCount);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  const std::vector<Level> levels = usable_levels();
  const auto wants = [&](const char* name) { return !*what || std::strcmp(what, name) == 0; };
  if (wants("gemm")) bench_gemm(rivals(levels), seconds);
  if (wants("bytes")) {
    for (const WeightBits bits :
         {WeightBits::kSeven, WeightBits::kEightAsTrained, WeightBits::kEight}) {
      bench_bytes(rivals(levels), bits, seconds);
    }
  }
  if (wants("depthwise")) {
    for (const WeightBits bits : {WeightBits::kSeven, WeightBits::kEight}) {
      bench_depthwise(rivals(levels), bits, seconds);
    }
  }
  if (wants("blocks")) bench_blocks(rivals(levels), seconds);
  if (wants("rows")) bench_rows(levels, seconds);
  return 0;
}
