#!/usr/bin/env bash
# Runs every command of pages that say what is promised and how to check it, and shows what came of each.
#
#   hack/promises.sh docs/evaluation/decider-server.md ...
#
# A command stands in the second column of a table, in backquotes; a row may hold several, divided by semicolons. What they
# print goes to .cache/promises/. A test that is skipped for want of a model or an API server fails here, and so does a package
# without a test of that name. Figures are printed to be compared by eye where a command does not hold them against a floor.
# The exit code is 1 if a command failed, or if a page holds none.
set -uo pipefail # without -e: what fails is counted
cd "$(dirname "$0")/.."
mkdir -p .cache/promises
export PATH=$PWD/bin:$PATH GATEWRIGHT_REQUIRE_MODELS=1 GATEWRIGHT_REQUIRE_APISERVER=1

commands() { awk -F ' [|] ' '/^[|] / && $2 ~ /^`.*`$/ { print substr($2, 2, length($2) - 2) }' "$1" | sed 's/\\|/|/g'; }

failed=0
for page in "$@"; do
  printf '== %s\n' "$page"
  mapfile -t all < <(commands "$page")
  ((${#all[@]})) || { failed=$((failed + 1)); echo "FAILS          no command found"; }
  for i in "${!all[@]}"; do
    log=.cache/promises/$(basename "$page" .md)-$((i + 1)).log
    begun=$SECONDS verdict=FAILS
    if bash -euo pipefail -c "${all[i]}" >"$log" 2>&1 </dev/null && ! grep -q 'no tests to run' "$log"; then
      verdict=holds
    else
      failed=$((failed + 1))
    fi
    printf '%s  %4d s  %s  > %s\n' "$verdict" $((SECONDS - begun)) "${all[i]}" "$log"
  done
done
printf '== %d failed\n' "$failed"
((failed == 0))
