#!/usr/bin/env bash
# The node's API server.
#
#   apiserver.sh run    runs it; among the node's processes only
#   apiserver.sh stop   kills it, from outside, as a crash would
#   apiserver.sh start  starts it again, from outside, and returns when it answers
set -euo pipefail
. "$(dirname "$0")/env.sh"
case ${1:-} in
  run) ;;
  stop)
    inside kill -KILL "$(<"$state/apiserver.pid")"
    exit
    ;;
  start)
    inside setsid "$here/apiserver.sh" run </dev/null >/dev/null 2>&1 &
    for _ in $(seq 300); do kubectl get --raw /readyz >/dev/null 2>&1 && exit 0; sleep 0.2; done
    echo "the API server does not answer after a minute: see $state/logs/apiserver.log" >&2
    exit 1
    ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
echo $$ >"$state/apiserver.pid" # its number among the node's processes
exec "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --advertise-address="$node_ip" --secure-port=6443 \
  --service-cluster-ip-range="$service_cidr" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --tls-cert-file="$state/pki/apiserver.crt" --tls-private-key-file="$state/pki/apiserver.key" --client-ca-file="$state/pki/ca.crt" \
  --kubelet-client-certificate="$state/pki/apiserver-kubelet.crt" --kubelet-client-key="$state/pki/apiserver-kubelet.key" \
  --kubelet-certificate-authority="$state/pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
  --service-account-key-file="$state/pki/sa.pub" --service-account-signing-key-file="$state/pki/sa.key" \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local >>"$state/logs/apiserver.log" 2>&1
