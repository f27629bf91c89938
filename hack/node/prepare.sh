#!/usr/bin/env bash
# Installs by apt-get, by name, what the node needs and this machine lacks.
set -euo pipefail
missing=()
need() { command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null || missing+=("$2"); }
need runc runc
need iptables iptables
need nft nftables
need conntrack conntrack
need ipset ipset
need ip iproute2
need pgrep procps
need curl curl
need openssl openssl
need nsenter util-linux
[[ -x /usr/lib/cni/bridge ]] || missing+=(containernetworking-plugins)
((${#missing[@]})) || exit 0
((EUID == 0)) || { echo "missing, and only root can install: ${missing[*]}" >&2; exit 1; }
echo "== installing with apt-get: ${missing[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
