#!/usr/bin/env bash
# Makes Gemma 3 270M with a decision interface for llama-server out of what hack/llama/fetch.sh has fetched.
set -euo pipefail
cd "$(dirname "$0")/../.."
plain=.cache/models/gemma-3-270m-q4_k_m.gguf made=.cache/models/gemma-3-270m-decision.gguf
if [[ ! -f $made || $made -ot hack/peers/decision.py || $made -ot $plain ]]; then
  python3 hack/peers/decision.py "$plain" "$made.part"
  mv "$made.part" "$made"
fi
