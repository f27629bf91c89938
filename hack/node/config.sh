#!/usr/bin/env bash
# Writes the configuration of the node's parts.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$state"/{etcd,containerd,kubelet,log,cni/conf,cni/state,logs,volumes,volplugins}

cat >"$state/cni/conf/10-bridge.conflist" <<C
{"cniVersion":"1.0.0","name":"pods","plugins":[
 {"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"hairpinMode":true,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"$node_cidr"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
C

# restrict_oom_score_adj: without CAP_SYS_RESOURCE no score may be lowered. opt.path: else a folder stays behind.
cat >"$state/containerd.toml" <<C
version = 3
root = "$state/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/opt"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "$state/cni/conf"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
C

printf 'search .\n' >"$state/resolv.conf"

# No systemd, perhaps cgroup v1, and a root file system whose device cAdvisor may not find: hence cgroupfs, failCgroupV1,
# no enforcement on the node itself and no isolation of local storage. Nothing is evicted for a full disk.
cat >"$state/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $state/pki/kubelet-serving.crt
tlsPrivateKeyFile: $state/pki/kubelet-serving.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$name
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
failSwapOn: false
clusterDNS: [$dns_ip]
clusterDomain: cluster.local
resolvConf: $state/resolv.conf
podLogsDir: /var/log/pods
volumePluginDir: $state/volplugins
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
shutdownGracePeriod: 0s
maxOpenFiles: 20000
C

# nf_conntrack_max cannot be written from a network namespace.
cat >"$state/proxy.yaml" <<C
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: $proxy_mode
clientConnection: {kubeconfig: $state/pki/proxy.kubeconfig}
clusterCIDR: $pod_cidr
hostnameOverride: $name
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
C
