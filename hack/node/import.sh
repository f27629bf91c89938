#!/usr/bin/env bash
# Brings image archives into the running node: import.sh ARCHIVE... Each image is there by its digest too, as it would be if it
# came from a registry.
#
#   import.sh --digest REF  prints the digest of an image that is there
set -euo pipefail
. "$(dirname "$0")/env.sh"
images() { inside "$bin/ctr" -a /run/containerd/containerd.sock -n k8s.io images "$@"; }
if [[ ${1:-} == --digest ]]; then
  images ls "name==$2" | awk 'NR == 2 { print $3 }'
  exit
fi
for archive in "$@"; do
  images import "$(realpath "$archive")"
done
images ls | while read -r ref _ digest _; do
  [[ $ref == localhost/*:* && $ref != *@* && $digest == sha256:* ]] || continue
  images tag --force "$ref" "${ref%:*}@$digest" </dev/null
done
