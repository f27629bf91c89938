#!/usr/bin/env bash
# Tests the web page of gatewright serve in Debian's chromium, driven by playwright-core, which npm installs at the version
# of the lock file. SHOTS=FOLDER keeps pictures of the pages there; GATEWRIGHT names a binary to test instead of this tree.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -z ${GATEWRIGHT:-} ]]; then
  go build -o .cache/bin/gatewright-browser ./cmd/gatewright
fi
cd internal/console/browser
if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --silent
  cp package-lock.json node_modules/.installed
fi
exec node --test --test-reporter=spec
