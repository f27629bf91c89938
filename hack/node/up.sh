#!/usr/bin/env bash
# Starts a Kubernetes node of real parts in namespaces of its own, and returns when it is Ready and its DNS answers.
# Needs root. build.sh has built the parts. down.sh ends it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[[ ! -e $state/init.pid ]] || { echo "the node is up already: run hack/node/down.sh first" >&2; exit 1; }
((EUID == 0)) || { echo "the node needs root: it makes namespaces, links and mounts" >&2; exit 1; }
start=$(date +%s%N)

mkdir -p "$state" /var/lib/cni /var/lib/kubelet # the last two are empty places to mount on
"$here/pki.sh"
"$here/config.sh"
# kubelet sets these for the whole machine; down.sh puts them back.
for key in vm/overcommit_memory kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  echo "$key $(<"/proc/sys/$key")"
done >"$state/sysctl"
mkdir -p "${cgroups[@]}"
# The whole node would weigh as much as one process of a busy machine.
if ((cgroup_version == 1)); then
  echo 16384 >"/sys/fs/cgroup/cpu/$name/cpu.shares"
  for file in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$name/$file"; done
fi

rm -f "$state/started"
setsid unshare --net --mount --pid --fork --mount-proc --kill-child --propagation private -- "$here/init.sh" >"$state/logs/init.log" 2>&1 </dev/null &
outer=$!
for _ in $(seq 100); do inner=$(pgrep -P $outer) && break; sleep 0.05; done
echo "$outer $inner" >"$state/init.pid"
ip link add "${name}0" type veth peer name node0 netns "$inner"
ip addr add "$host_ip/30" dev "${name}0"
ip link set "${name}0" up

ready() { [[ -e $state/started && $(kubectl get node "$name" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null) == True ]]; }
for _ in $(seq 600); do
  kill -0 $outer 2>/dev/null || { cat "$state/logs/init.log" >&2; exit 1; }
  ready && break
  sleep 0.2
done
ready || { echo "the node is not Ready after two minutes: see $state/logs" >&2; exit 1; }
kubectl apply -f "$here/manifests/coredns.yaml" >/dev/null
kubectl -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
say "node Ready and DNS answering after $((($(date +%s%N) - start) / 1000000)) ms"
