#!/usr/bin/env bash
# Kills the first process of a container, as a crash would: kill.sh CONTAINER_ID
set -euo pipefail
. "$(dirname "$0")/env.sh"
inside "$bin/ctr" -a /run/containerd/containerd.sock -n k8s.io task kill --signal SIGKILL "$1"
