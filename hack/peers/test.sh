#!/usr/bin/env bash
# Checks the decider server with clients of others, and the gate's clients with llama-server. What is missing is fetched and
# built: libraries and models (400 MB), llama-server (five to ten minutes, once), a Python SDK in .cache/venv-peers.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '== %s\n' "$*"; }
hack/llama/fetch.sh library
hack/llama/fetch.sh models
hack/llama/server.sh
hack/peers/prepare.sh

say "clients of others: the Python SDK of typed questions asks the decider server"
venv=.cache/venv-peers
if [[ ! -f $venv/.requirements ]] || ! cmp -s hack/peers/requirements.txt "$venv/.requirements"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r hack/peers/requirements.txt
  cp hack/peers/requirements.txt "$venv/.requirements"
fi
go build -o .cache/bin/decider ./cmd/decider
log=$(mktemp)
.cache/bin/decider -listen 127.0.0.1:0 -model .cache/models/gemma-3-270m-q4_k_m.gguf -library .cache/llama -threads 1 -context-tokens 1024 \
  -sha256 a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 -request-timeout 1m -drain-delay 0s >"$log" 2>&1 &
decider=$!
trap 'kill "$decider" 2>/dev/null || true; rm -f "$log"' EXIT
url=
for _ in $(seq 600); do
  kill -0 "$decider" 2>/dev/null || { cat "$log" >&2; exit 1; }
  [[ -n $url ]] || url=$(sed -n 's#^listening on #http://#p' "$log")
  [[ -n $url ]] && python3 -c "import urllib.request; urllib.request.urlopen('$url/readyz')" 2>/dev/null && break
  sleep 0.2
done
"$venv/bin/python" -B hack/peers/client.py "$url"
kill "$decider"
wait "$decider" || true

say "the gate's clients with llama-server, and the gate with a real model: kills and 64 clients"
GATEWRIGHT_REAL_MODELS=1 go test -count=1 -timeout 20m ./hack/peers/ ./internal/serve/ -run 'Peer|Killing|Crossed'
