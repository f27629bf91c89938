#!/usr/bin/env bash
# Ends the node: one kill takes its processes, mounts, links and packet rules. Removes its state; `down.sh keep` keeps it.
set -uo pipefail
. "$(dirname "$0")/env.sh"
outer=
if [[ -s $state/init.pid ]]; then
  read -r outer inner <"$state/init.pid"
  # Only a process that is ours: numbers are used again.
  grep -q "node/init.sh" "/proc/$inner/cmdline" 2>/dev/null && kill -KILL "$inner"
  for _ in $(seq 100); do [[ -e /proc/$outer ]] || break; sleep 0.1; done
fi
! ip link show "${name}0" >/dev/null 2>&1 || ip link del "${name}0"
if [[ -f $state/sysctl ]]; then
  while read -r key value; do
    [[ $(<"/proc/sys/$key") == "$value" ]] || echo "$value" >"/proc/sys/$key"
  done <"$state/sysctl"
fi
for group in "${cgroups[@]}"; do
  [[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} \;
done
rmdir /var/lib/cni /var/lib/kubelet 2>/dev/null
[[ -z $outer || ! -e /proc/$outer ]] || { echo "process $outer is still there: its state is kept" >&2; exit 1; }
rm -f "$state/init.pid"
# Only a folder that up.sh made.
[[ ${1:-} == keep || ! -f $state/sysctl ]] || rm -rf "$state"
