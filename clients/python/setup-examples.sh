#!/usr/bin/env bash
# Installs what the framework examples are tested with into .cache/venv-clients, from the lock with hashes.
# With --lock it renews requirements-examples.txt from requirements-examples.in, for which it needs uv.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
venv="$root/.cache/venv-clients"
lock="$here/requirements-examples.txt"
python="${PYTHON:-python3}"

if [[ "${1:-}" == "--lock" ]]; then
	cd "$here"
	exec uv pip compile --universal --generate-hashes --python-version 3.11 --no-annotate --quiet \
		--custom-compile-command "clients/python/setup-examples.sh --lock" \
		requirements-examples.in --output-file requirements-examples.txt
fi

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	echo "the examples need Python 3.11 or newer; name one with PYTHON=..." >&2
	exit 1
fi

# The stamp is the lock that was installed whole, by which interpreter.
stamp="$(cat "$lock" <("$python" -VV) | sha256sum | cut -d ' ' -f 1)"
if [[ "$(cat "$venv/stamp" 2>/dev/null)" == "$stamp" ]]; then
	echo "examples: .cache/venv-clients is up to date"
	exit 0
fi
echo "examples: installing LangChain and Strands Agents into .cache/venv-clients (a minute or more)"
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$lock"
echo "$stamp" >"$venv/stamp"
