#!/usr/bin/env bash
# Runs the tests of the Go, Python and JavaScript clients, and of the plain JavaScript example. Needs go, python3 (3.10
# or newer), node (20 or newer) and openssl, and installs nothing. TESTFLAGS are for go test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

echo "clients: go"
# shellcheck disable=SC2086 # several flags are meant
go test ${TESTFLAGS:-} ./go/...
echo "clients: python"
python3 -B -m unittest discover python
echo "clients: javascript"
(cd js && node --test)
