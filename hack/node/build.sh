#!/usr/bin/env bash
# Builds the parts of the test node into .cache/node/bin: etcd, Kubernetes, containerd, CoreDNS and kube-router, each of its
# module in hack/tools. The first time that is ten minutes on two idle processors; later a few seconds, and nothing when
# neither the modules nor Go have changed.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$bin/images"
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
kubernetes=v1.37.2

inputs() {
  go version
  cat "$here/build.sh" "$here/images.Dockerfile" "$top"/hack/tools/{kube,containerd,coredns,netpol,image}/go.{mod,sum} \
    "$top"/hack/tools/coredns/*.go "$top"/hack/tools/image/*.go "$top"/hack/tools/image/cmd/*/*.go
}
stamp=$(inputs | sha256sum | cut -d' ' -f1)
[[ ! -f $bin/stamp || $(<"$bin/stamp") != "$stamp" ]] || exit 0
rm -f "$bin/stamp"

# build MODULE OUTPUT ARGUMENT...: says what it builds and how long it took.
build() {
  local module=$1 output=$2 start=$SECONDS
  shift 2
  (cd "$top/hack/tools/$module" && go build -o "$output" "$@")
  say "$module: ${*: -1} - $((SECONDS - start)) s"
}

say "building the parts of a Kubernetes node - ten minutes the first time on two idle processors"
version="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
for part in kube-apiserver kubectl kube-controller-manager kube-scheduler kubelet kube-proxy; do
  build kube "$bin/$part" -ldflags "$version" "k8s.io/kubernetes/cmd/$part"
done
build kube "$bin/etcd" -ldflags "-s -w" go.etcd.io/etcd/server/v3
for part in containerd containerd-shim-runc-v2 ctr; do
  build containerd "$bin/$part" -tags "no_btrfs no_devmapper no_zfs" -ldflags "-s -w" "github.com/containerd/containerd/v2/cmd/$part"
done
build coredns "$bin/coredns" -ldflags "-s -w" .
build netpol "$bin/kube-router" -ldflags "-s -w" github.com/cloudnativelabs/kube-router/v2/cmd/kube-router
build image "$bin/image" -ldflags "-s -w" .
build image "$bin/pause" -ldflags "-s -w" ./cmd/pause
for image in pause coredns; do
  "$bin/image" -file "$here/images.Dockerfile" -target "$image" -ref "localhost/$image:1" -from bin:/="$bin" -out "$bin/images/$image.tar"
done
echo "$stamp" >"$bin/stamp"
