#!/usr/bin/env bash
# The node's API server. Runs among the node's processes.
set -euo pipefail
. "$(dirname "$0")/env.sh"
exec "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --advertise-address="$node_ip" --secure-port=6443 \
  --service-cluster-ip-range="$service_cidr" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --tls-cert-file="$state/pki/apiserver.crt" --tls-private-key-file="$state/pki/apiserver.key" --client-ca-file="$state/pki/ca.crt" \
  --kubelet-client-certificate="$state/pki/apiserver-kubelet.crt" --kubelet-client-key="$state/pki/apiserver-kubelet.key" \
  --kubelet-certificate-authority="$state/pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
  --service-account-key-file="$state/pki/sa.pub" --service-account-signing-key-file="$state/pki/sa.key" \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local >>"$state/logs/apiserver.log" 2>&1
