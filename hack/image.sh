#!/usr/bin/env bash
# Packs the images of the Dockerfile into archives, without a container engine: gatewright.tar and decider.tar in DIR
# (bin/images by default), named REPOSITORY:TAG and REPOSITORY-decider:TAG. `docker load` and `ctr images import` read them.
# REPOSITORY is gatewright by default and TAG the chart's appVersion: the images that the chart asks for without a value.
#
# The system libraries of the decider image are those of this machine, so that needs Debian 12 on amd64.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} dir=${DIR:-bin/images}
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
app_version=$(sed -n 's/^appVersion: *"\{0,1\}\([^" #]*\).*/\1/p' charts/gatewright/Chart.yaml)
repository=${REPOSITORY:-gatewright} tag=${TAG:-$app_version}
[[ -n $tag ]] || { echo "charts/gatewright/Chart.yaml has no appVersion, and TAG is empty" >&2; exit 1; }

say() { printf '== %s\n' "$*"; }
say "building manager, gate, gatewright and decider $version"
out=.cache/image/out
mkdir -p "$out" "$dir" .cache/bin
CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$out/" \
  ./cmd/manager ./cmd/gate ./cmd/gatewright ./cmd/decider
hack/llama/fetch.sh library
(cd hack/tools/image && CGO_ENABLED=0 "$go" test -trimpath ./... >/dev/null && CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -o ../../../.cache/bin/image .)

pack() {
  .cache/bin/image -file Dockerfile -target "$1" -ref "$2:$tag" -out "$dir/$1.tar" -arg VERSION="$version" \
    -from build:/out="$out" -from libraries:/=/ -from llama:/src/.cache/llama=.cache/llama
  say "$dir/$1.tar: $2:$tag, $(du -m "$dir/$1.tar" | cut -f1) MB"
}
pack gatewright "$repository"
pack decider "$repository-decider"
