#!/usr/bin/env bash
# Installs by apt-get, by name, what the tests need and this machine lacks. Go has to be there. Does nothing and says
# nothing when all of it is there.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

command -v go >/dev/null || { echo "go is missing: install the version that go.mod names" >&2; exit 1; }

# need COMMAND PACKAGE: notes the package when the command is missing.
missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need git git
need make make
need gcc gcc # the race detector links with it
command -v gcc >/dev/null || missing+=(libc6-dev)
need curl curl
need openssl openssl
need python3 python3
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
need node nodejs
need npm npm
need chromium chromium # the tests of the web page
((${#missing[@]})) || exit 0

sudo=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || { echo "missing, and only root can install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo -n)
fi
echo "== installing with apt-get: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
