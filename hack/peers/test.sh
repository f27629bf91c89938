#!/usr/bin/env bash
# Checks the decider server with clients of others, and the gate's clients with llama-server. What is missing is fetched and
# built: libraries and models (400 MB), llama-server (five to ten minutes, once), a Python SDK in .cache/venv-peers.
set -euo pipefail
cd "$(dirname "$0")/../.."

hack/peers/sdk.sh
hack/llama/fetch.sh models
hack/llama/server.sh
hack/peers/prepare.sh

printf '== %s\n' "the gate's clients with llama-server, and the gate with a real model: kills and 64 clients"
GATEWRIGHT_REAL_MODELS=1 go test -count=1 -timeout 20m ./hack/peers/ ./internal/serve/ -run 'Peer|Killing|Crossed'
