#!/usr/bin/env bash
# Builds what tests on a real API server need, into .cache/kube/bin: kube-apiserver, etcd and kubectl, of the versions that
# hack/tools/kube/go.mod pins. Does nothing and says nothing when they are there and nothing has changed: they are keyed by
# that module and the version of Go.
#
#   hack/kube.sh    from nothing: 10 CPU minutes and 4 GB of Go's caches, a change of versions included
set -euo pipefail
cd "$(dirname "$0")/.."

module=hack/tools/kube
bin=$PWD/.cache/kube/bin
version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$module/go.mod")
[[ -n $version ]] || { echo "$module/go.mod names no version of k8s.io/kubernetes" >&2; exit 1; }
minor=${version#v1.}
minor=${minor%%.*}

key=$({ cat "$module/go.mod" "$module/go.sum" hack/kube.sh; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -d' ' -f1)
all_there() {
  for name in kube-apiserver etcd kubectl; do [[ -x $bin/$name ]] || return 1; done
}
if all_there && [[ $(cat "$bin/.key" 2>/dev/null) == "$key" ]]; then
  exit 0
fi

printf '== %s\n' "building kube-apiserver, kubectl $version and etcd into .cache/kube/bin - five to fifteen minutes - once"
mkdir -p "$bin"
work=$(mktemp -d "$bin/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
# The API server says by these which version it is; kubectl compares.
says=k8s.io/component-base/version
flags="-s -w -X $says.gitVersion=$version -X $says.gitMajor=1 -X $says.gitMinor=$minor"
(
  cd "$module"
  go build -ldflags "$flags" -o "$work/" k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl
  go build -ldflags "-s -w" -o "$work/etcd" go.etcd.io/etcd/server/v3
)
for name in kube-apiserver kubectl etcd; do mv -f "$work/$name" "$bin/$name"; done
echo "$key" >"$bin/.key"
