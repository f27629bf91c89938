#!/usr/bin/env bash
# Brings image archives into the running node: import.sh ARCHIVE...
set -euo pipefail
. "$(dirname "$0")/env.sh"
for archive in "$@"; do
  inside "$bin/ctr" -a /run/containerd/containerd.sock -n k8s.io images import "$(realpath "$archive")"
done
