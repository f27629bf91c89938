#!/usr/bin/env bash
# Kills the first process of a container, as a crash would, or sends it another signal: kill.sh CONTAINER_ID [SIGNAL]
set -euo pipefail
. "$(dirname "$0")/env.sh"
inside "$bin/ctr" -a /run/containerd/containerd.sock -n k8s.io task kill --signal "${2:-SIGKILL}" "$1"
