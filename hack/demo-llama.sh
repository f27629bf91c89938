#!/usr/bin/env bash
# Shows the sample policies with a real model as their decider. make build and make build-decider have made the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/llama/fetch.sh library
hack/llama/fetch.sh smollm2
go build -o .cache/bin/demo ./hack/demo
exec .cache/bin/demo llama
