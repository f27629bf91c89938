#!/usr/bin/env bash
# Process 1 of the node's own PID, mount and network namespaces: what it starts, mounts or adds to the network ends with
# it. Started by up.sh.
set -euo pipefail
. "$(dirname "$0")/env.sh"

mount --make-rshared /
mount -t tmpfs tmpfs /run
mount --bind "$state/log" /var/log
mount --bind "$state/cni/state" /var/lib/cni
mount --bind "$state/kubelet" /var/lib/kubelet
mkdir -p /run/netns /run/lock
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
for _ in $(seq 100); do [[ ! -e /proc/sys/net/ipv4/conf/node0 ]] || break; sleep 0.05; done
ip addr add "$node_ip/30" dev node0
ip link set node0 up
ip route add default via "$host_ip"
export PATH=$bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=$state
unset -f kubectl

# part NAME COMMAND...: starts it in the background with a log of its own.
: >"$state/pids"
part() {
  local part=$1
  shift
  "$@" >>"$state/logs/$part.log" 2>&1 &
  echo "$part $!" >>"$state/pids"
}
answers() {
  for _ in $(seq 600); do curl -fsk -o /dev/null "$@" 2>/dev/null && return; sleep 0.1; done
  echo "no answer: $*" >&2
  exit 1
}

# The state goes with the node, so etcd need not wait for the disk.
part etcd etcd --data-dir "$state/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
  --initial-cluster default=http://127.0.0.1:2380 --unsafe-no-fsync --logger zap
part containerd containerd -c "$state/containerd.toml"
# Of the other parts, the API server alone is stopped and started by tests: apiserver.sh.
part apiserver "$here/apiserver.sh" run
answers --cert "$state/pki/admin.crt" --key "$state/pki/admin.key" https://127.0.0.1:6443/readyz
part controller-manager kube-controller-manager --kubeconfig="$state/pki/controller-manager.kubeconfig" --leader-elect=false \
  --bind-address=127.0.0.1 --use-service-account-credentials --service-account-private-key-file="$state/pki/sa.key" \
  --root-ca-file="$state/pki/ca.crt" --cluster-signing-cert-file="$state/pki/ca.crt" --cluster-signing-key-file="$state/pki/ca.key" \
  --flex-volume-plugin-dir="$state/volplugins" --allocate-node-cidrs=true --cluster-cidr="$pod_cidr" --service-cluster-ip-range="$service_cidr"
part scheduler kube-scheduler --kubeconfig="$state/pki/scheduler.kubeconfig" --leader-elect=false --bind-address=127.0.0.1
for image in "$bin"/images/*.tar; do
  ctr -a /run/containerd/containerd.sock -n k8s.io images import "$image" >>"$state/logs/import.log" 2>&1
done
part kubelet kubelet --config="$state/kubelet.yaml" --kubeconfig="$state/pki/kubelet.kubeconfig" --hostname-override="$name" --node-ip="$node_ip" --v=2
part proxy kube-proxy --config="$state/proxy.yaml"
# kube-router ends at once if its Node is not there yet. Here it enforces network policies and does nothing else.
for _ in $(seq 300); do kubectl --kubeconfig "$kubeconfig" get node "$name" >/dev/null 2>&1 && break; sleep 0.1; done
part kube-router kube-router --run-firewall=true --run-router=false --run-service-proxy=false --kubeconfig="$kubeconfig" \
  --hostname-override="$name" --service-cluster-ip-range="$service_cidr" --metrics-port=0 --health-port=20244

touch "$state/started"
trap 'exit 0' TERM INT
while :; do
  wait -n || true
  sleep 1
done
