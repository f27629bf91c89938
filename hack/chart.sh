#!/usr/bin/env bash
# Keeps the chart and config/ in step.
#
#   hack/chart.sh files   copies what the chart renders but does not own into charts/gatewright/files: CRDs, roles,
#                         admission policies, alerts, dashboard
#   hack/chart.sh config  renders the chart with its defaults into the folders of config/ that kustomize reads
#   hack/chart.sh check   lints the chart, renders it with many values, and compares it with config/default
set -euo pipefail
cd "$(dirname "$0")/.."
export HELM_CACHE_HOME=.cache/helm HELM_CONFIG_HOME=.cache/helm HELM_DATA_HOME=.cache/helm
helm=.cache/bin/helm chart=charts/gatewright

say() { printf '== %s\n' "$*"; }

files() {
  rm -rf "$chart/files"
  mkdir -p "$chart"/files/{crds,rbac,admission,webhook,monitoring}
  cp config/crd/bases/*.yaml "$chart/files/crds/"
  cp config/rbac/{manager,gate,approver}.yaml "$chart/files/rbac/"
  cp config/monitoring/{rules.yaml,dashboard.json} "$chart/files/monitoring/"
  local folder
  for folder in admission webhook; do
    find "config/$folder" -maxdepth 1 -name '*.yaml' ! -name kustomization.yaml -exec cp {} "$chart/files/$folder/" \; 2>/dev/null || true
  done
}

case ${1:-} in
  files) files ;;
  config) GATEWRIGHT_REQUIRE_HELM=1 go test -count=1 -run TestConfigIsRenderedFromTheChart ./charts/gatewright -update ;;
  check)
    say "helm lint"
    "$helm" lint --strict --quiet "$chart"
    say "rendered with many values, compared with config/default"
    GATEWRIGHT_REQUIRE_HELM=1 go test -count=1 ./charts/...
    ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
