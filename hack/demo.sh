#!/usr/bin/env bash
# Shows the gate at work on the sample policies. make build has made bin/gatewright.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o .cache/bin/demo ./hack/demo
exec .cache/bin/demo
