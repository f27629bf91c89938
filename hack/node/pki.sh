#!/usr/bin/env bash
# Makes the node's authority, one certificate and kubeconfig a component. Does nothing when they are there.
#
#   pki.sh user NAME [GROUP]  makes a kubeconfig for a person, and prints its path
#   pki.sh server NAME NAMES  makes NAME.crt and NAME.key for a server, NAMES as in DNS:a,DNS:b, and prints their path without the ending
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$state/pki"
cd "$state/pki"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }

# certificate NAME SUBJECT USAGE [NAMES]
certificate() {
  new_key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" 2>/dev/null \
    -extfile <(printf 'extendedKeyUsage=%s\n' "$3"; [[ -z ${4:-} ]] || printf 'subjectAltName=%s\n' "$4")
}

# kubeconfig NAME SUBJECT SERVER
kubeconfig() {
  certificate "$1" "$2" clientAuth
  cat >"$1.kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: node, cluster: {server: "https://$3:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: node, context: {cluster: node, user: $1}}]
current-context: node
K
}

if [[ ${1:-} == user ]]; then
  kubeconfig "$2" "${3:+/O=$3}/CN=$2" "$node_ip"
  echo "$PWD/$2.kubeconfig"
  exit
fi
if [[ ${1:-} == server ]]; then
  certificate "$2" "/CN=$2" serverAuth "$3"
  echo "$PWD/$2"
  exit
fi
[[ ! -f complete ]] || exit 0
new_key ca
openssl req -x509 -new -key ca.key -subj "/CN=$name test node" -days 30 -out ca.crt -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
certificate apiserver /CN=kube-apiserver serverAuth \
  "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$node_ip,IP:$api_ip"
certificate kubelet-serving "/CN=$name" serverAuth "DNS:$name,IP:$node_ip,IP:127.0.0.1"
certificate apiserver-kubelet /O=system:masters/CN=apiserver-kubelet clientAuth
openssl genrsa -out sa.key 2048 2>/dev/null
openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
kubeconfig admin /O=system:masters/CN=admin "$node_ip"
kubeconfig controller-manager /CN=system:kube-controller-manager 127.0.0.1
kubeconfig scheduler /CN=system:kube-scheduler 127.0.0.1
kubeconfig proxy /CN=system:kube-proxy 127.0.0.1
kubeconfig kubelet "/O=system:nodes/CN=system:node:$name" 127.0.0.1
touch complete
