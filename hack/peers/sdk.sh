#!/usr/bin/env bash
# Asks the decider server with the Python SDK that others wrote for its wire, and a real model. What is missing is fetched:
# libraries and model (270 MB), the SDK by pip in .cache/venv-peers. With all of that there it takes half a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

printf '== %s\n' "clients of others: the Python SDK of typed questions asks the decider server"
hack/llama/fetch.sh library
hack/llama/fetch.sh gemma
venv=.cache/venv-peers
if [[ ! -f $venv/.requirements ]] || ! cmp -s hack/peers/requirements.txt "$venv/.requirements"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r hack/peers/requirements.txt
  cp hack/peers/requirements.txt "$venv/.requirements"
fi
CGO_ENABLED=0 go build -o .cache/bin/decider ./cmd/decider
log=$(mktemp)
.cache/bin/decider -listen 127.0.0.1:0 -model .cache/models/gemma-3-270m-q4_k_m.gguf -library .cache/llama -threads 1 -context-tokens 1024 \
  -sha256 a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 -request-timeout 1m -drain-delay 0s >"$log" 2>&1 &
decider=$!
trap 'kill "$decider" 2>/dev/null || true; rm -f "$log"' EXIT
url=
ready=
for _ in $(seq 600); do
  kill -0 "$decider" 2>/dev/null || { cat "$log" >&2; exit 1; }
  [[ -n $url ]] || url=$(sed -n 's#^listening on #http://#p' "$log")
  [[ -n $url ]] && python3 -c "import urllib.request; urllib.request.urlopen('$url/readyz')" 2>/dev/null && { ready=1; break; }
  sleep 0.2
done
[[ -n $ready ]] || { echo "the decider did not become ready:" >&2; cat "$log" >&2; exit 1; }
"$venv/bin/python" -B hack/peers/client.py "$url"
kill "$decider"
wait "$decider" || { echo "the decider did not end in peace:" >&2; cat "$log" >&2; exit 1; }
trap 'rm -f "$log"' EXIT
