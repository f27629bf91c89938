#!/usr/bin/env bash
# Fails if the working tree holds anything that is not committed: after the writers ran, that is a generated file that
# was changed by hand, was not written anew, or was not added.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== no file changed, none is untracked"
changes=$(git status --porcelain)
[[ -z $changes ]] && exit 0

echo "These files differ from what is committed:"
echo "$changes"
git --no-pager diff --stat
git --no-pager diff | head -n 200
echo "Run make generate manifests tidy fmt, look at the changes, and commit them."
exit 1
