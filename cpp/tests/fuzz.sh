#!/bin/sh
# Coverage-guided fuzzing of every target: fuzz.sh BIN SECONDS, where BIN holds cmake and ninja.
# What is found stays in build/fuzz/findings, and what was learned in build/fuzz/learned.
set -eu

bin=$(cd "$1" && pwd)
seconds=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/build/fuzz

compiler=
for name in clang++ $(seq -f 'clang++-%g' 30 -1 14); do
  if command -v "$name" >/dev/null; then
    compiler=$name
    break
  fi
done
if [ -z "$compiler" ]; then
  echo "Fuzzing needs clang 14 or newer with its libFuzzer: apt install clang (or dnf, brew)." >&2
  exit 1
fi

mkdir -p "$out/findings"
"$bin/cmake" -S "$root" -B "$out" -G Ninja -DCMAKE_MAKE_PROGRAM="$bin/ninja" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRECORDKIT_CPP_TESTS=ON -DRECORDKIT_FUZZ=ON >"$out/cmake.log" ||
  { cat "$out/cmake.log"; exit 1; }
"$bin/cmake" --build "$out"

failed=
for target in records:records salvage:records decode:examples rewrite:examples encode:examples jpeg:jpegs; do
  seeds=$root/cpp/tests/corpus/${target#*:}
  target=${target%:*}
  mkdir -p "$out/learned/$target"
  echo "$target: $seconds s"
  # Inputs stay small: every branch is within reach of a few hundred bytes, and more only slows the search.
  "$out/cpp/tests/fuzz_$target" -max_total_time="$seconds" -max_len=2000 -timeout=20 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$out/findings/$target-" "$out/learned/$target" "$seeds" 2>"$out/$target.log" ||
    failed="$failed $target"
  grep -E '^stat::number_of_executed_units|^SUMMARY|ERROR:|^terminate|^  what|Test unit written' "$out/$target.log" || true
done

if [ -n "$failed" ]; then
  echo "Found something in:$failed. The inputs are in $out/findings, the logs in $out." >&2
  exit 1
fi
