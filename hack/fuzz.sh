#!/usr/bin/env bash
# Runs each fuzz target of the module for FUZZTIME (20s, or a number of executions: 100000x), then sends RANDOM_CALLS
# (1000000) random calls through the gate. What a target finds is kept in its testdata/fuzz: commit it with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."

FUZZTIME=${FUZZTIME:-20s}
RANDOM_CALLS=${RANDOM_CALLS:-1000000}

targets=$(grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+\(' internal api clients 2>/dev/null |
  sed -E 's/^(.*)\/[^/]+:func (Fuzz[A-Za-z0-9_]+)\(/\1 \2/' | sort -u)
[[ -n $targets ]] || { echo "fuzz: no targets found" >&2; exit 1; }
echo "== $(wc -l <<<"$targets") fuzz targets, $FUZZTIME each"
while read -r dir name; do
  echo "== $name in $dir"
  go test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" "./$dir" </dev/null
done <<<"$targets"

echo "== $RANDOM_CALLS random calls through the gate"
[[ $(go test -list RandomCalls ./internal/gate) == *RandomCalls* ]] ||
  { echo "fuzz: internal/gate has no test RandomCalls" >&2; exit 1; }
GATEWRIGHT_RANDOM_CALLS=$RANDOM_CALLS go test -run RandomCalls -count 1 -timeout 2h ./internal/gate
