# Sourced by the other scripts of this folder.
#
#   NODE_BIN    built binaries and images; .cache/node/bin by default
#   NODE_DIR    all state of the node, removed by down.sh; .cache/node/state by default
#   PROXY_MODE  nftables (default) or iptables
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
bin=$(realpath -m "${NODE_BIN:-$top/.cache/node/bin}")
state=$(realpath -m "${NODE_DIR:-$top/.cache/node/state}")
proxy_mode=${PROXY_MODE:-nftables}

name=gatewright # of the Node, its cgroup and its link
host_ip=198.51.100.1 node_ip=198.51.100.2 # of a documentation range, routed nowhere
pod_cidr=10.244.0.0/16 node_cidr=10.244.0.0/24 service_cidr=10.96.0.0/16
api_ip=10.96.0.1 dns_ip=10.96.0.10
# cgroup v1 has a tree for each of these; cgroup v2 has one tree.
if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then
  cgroups=(/sys/fs/cgroup/$name) cgroup_version=2
else
  cgroups=(/sys/fs/cgroup/{cpu,cpuacct,cpuset,memory,devices,freezer,blkio,pids,systemd}/$name) cgroup_version=1
fi
kubeconfig=$state/pki/admin.kubeconfig

say() { printf '== %s\n' "$*"; }
kubectl() { "$bin/kubectl" --kubeconfig "$kubeconfig" "$@"; }
# inside COMMAND...: runs it among the node's processes, mounts and links.
inside() {
  local outer inner
  read -r outer inner <"$state/init.pid" || return
  nsenter -t "$inner" -n -m -p "$@"
}
