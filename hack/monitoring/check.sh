#!/usr/bin/env bash
# Checks config/monitoring with Prometheus' own tools: the rules, and each alert on series that must raise it and on series
# that must not. With the argument live it also starts a gate on the samples and a Prometheus that scrapes it, sends calls
# for a minute, evaluates every expression of the dashboard, and draws the panels into docs/images/dashboard.png. Installs
# what is missing by apt-get.
set -euo pipefail
cd "$(dirname "$0")/../.."
export DEBIAN_FRONTEND=noninteractive

mode=${1:-rules}
[[ $mode == rules || $mode == live ]] || { echo "usage: $0 [live]" >&2; exit 2; }

missing=()
command -v promtool >/dev/null || missing+=(prometheus)
[[ $mode == rules ]] || command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
if ((${#missing[@]})); then
  sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "missing, and only root can install: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo -n)
  fi
  echo "== installing with apt-get: ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

echo "== rules"
promtool check rules config/monitoring/rules.yaml
promtool test rules config/monitoring/rules_test.yaml

[[ $mode == live ]] || exit 0
[[ -x bin/gatewright ]] || { echo "bin/gatewright is missing: make build" >&2; exit 1; }
echo "== the dashboard, on a gate and a Prometheus"
go build -o .cache/bin/monitoring ./hack/monitoring
exec .cache/bin/monitoring
