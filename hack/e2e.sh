#!/usr/bin/env bash
# Installs the chart on a real Kubernetes node on this machine and goes through the life of an installation: test/e2e.
# Needs root. What it takes: the first time thirty minutes to build on two idle processors, later two; then some fifteen
# minutes to run, 4 GB of memory, 6 GB of disk in .cache.
#
#   KEEP=1                 leaves the node up in the end; hack/node/down.sh ends it. With a node that is up, that one is used
#   GATEWRIGHT_E2E_ONLY=.. runs the steps whose names have these words
#   REPORT=FILE            writes what was seen as Markdown
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/node/env.sh
go=${GO:-go} out=$top/.cache/e2e

say "preparing: parts of the node, images, a small model, llama-server, NATS"
hack/node/prepare.sh
hack/node/build.sh
hack/node/pki.sh
hack/llama/fetch.sh smollm2
hack/llama/server.sh
mkdir -p "$out"
REPOSITORY=localhost/gatewright TAG=e2e DIR=$out hack/image.sh
for program in ./test/e2e/agent ./test/e2e/outside github.com/nats-io/nats-server/v2; do
  name=$(basename "${program%/v2}")
  CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags "-s -w" -o "$out/$name" "$program"
done
[[ $out/decision.gguf -nt hack/peers/decision.py ]] || python3 hack/peers/decision.py .cache/models/SmolLM2-135M-Instruct.Q4_1.gguf "$out/decision.gguf"
cat /etc/ssl/certs/ca-certificates.crt "$state/pki/ca.crt" >"$out/ca-certificates.crt"
images=()
# pack STAGE: an image of test/e2e/Dockerfile
pack() {
  .cache/bin/image -file test/e2e/Dockerfile -target "$1" -ref "localhost/$1:e2e" -out "$out/$1.tar" \
    -from build:/="$out" -from company:/="$out" -from models:/=.cache/models -from llama:/=.cache/llama-server -from libraries:/=/ \
    -base gatewright="$out/gatewright.tar" -base decider="$out/decider.tar"
  images+=("$out/$1.tar")
}
for stage in agent company company-decider model foreign outside nats-server; do pack $stage; done
cp .cache/image/out/gatewright "$out/kubectl-gatewright"
"$go" test -tags e2e -c -o "$out/e2e.test" ./test/e2e

if [[ ! -e $state/init.pid ]]; then
  [[ -n ${KEEP:-} ]] || trap hack/node/down.sh EXIT
  hack/node/up.sh
fi
say "bringing the images in"
hack/node/import.sh "${images[@]}" >/dev/null
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
