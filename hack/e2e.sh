#!/usr/bin/env bash
# Installs the chart on a real Kubernetes node on this machine and goes through the life of an installation: test/e2e.
# Needs root. What it takes: the first time twenty minutes to build on two idle processors, later one to two; then some
# ten minutes to run, 3 GB of memory, 4 GB of disk in .cache.
#
#   KEEP=1                 leaves the node up in the end; hack/node/down.sh ends it. With a node that is up, that one is used
#   GATEWRIGHT_E2E_ONLY=.. runs the steps whose names have these words
#   REPORT=FILE            writes what was seen as Markdown
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/node/env.sh
go=${GO:-go} out=$top/.cache/e2e

say "preparing: parts of the node, images, a small model"
hack/node/prepare.sh
hack/node/build.sh
hack/llama/fetch.sh smollm2
mkdir -p "$out"
REPOSITORY=localhost/gatewright TAG=e2e DIR=$out hack/image.sh
CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags "-s -w" -o "$out/agent" ./test/e2e/agent
.cache/bin/image -file test/e2e/Dockerfile -target agent -ref localhost/agent:e2e -from build:/="$out" -out "$out/agent.tar"
cp .cache/image/out/gatewright "$out/kubectl-gatewright"
"$go" test -tags e2e -c -o "$out/e2e.test" ./test/e2e

if [[ ! -e $state/init.pid ]]; then
  [[ -n ${KEEP:-} ]] || trap hack/node/down.sh EXIT
  hack/node/up.sh
fi
say "bringing the images in"
hack/node/import.sh "$out"/{gatewright,decider,agent}.tar >/dev/null
start=$SECONDS
(cd test/e2e && GATEWRIGHT_E2E_REPORT=$out/report.md "$out/e2e.test" -test.v -test.timeout 40m -test.failfast)
say "every step passed, $((SECONDS - start)) s"
if [[ -n ${REPORT:-} ]]; then
  {
    echo "# End-to-end test"
    echo
    echo "What \`make e2e\` saw on $(date -u +%Y-%m-%d), version $(git describe --tags --always 2>/dev/null || echo unknown), on $(nproc) processors: the chart on a node of"
    echo "real parts (Kubernetes $("$bin/kubelet" --version | cut -d' ' -f2), containerd, CoreDNS, kube-router). Each step builds on those before it. The times are"
    echo "of a machine that does other things too. \`REPORT=docs/evaluation/e2e.md make e2e\` writes this page."
    cat "$out/report.md"
  } >"$REPORT"
  say "written: $REPORT"
fi
