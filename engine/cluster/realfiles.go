package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// pauseImage is what the container is of that holds a pod's namespaces.
	pauseImage = "localhost/kconverge/pause:1"
	// containerdSocket is so to those on the ground: what stands there is short
	// enough for a socket whatever the temporary directory is.
	containerdSocket = "/run/containerd/containerd.sock"
)

func (r *realNode) path(name string) string { return filepath.Join(r.dir, name) }

// writeFiles writes what containerd reads.
func (r *realNode) writeFiles() error {
	if err := os.MkdirAll(r.path("cni"), 0o700); err != nil {
		return err
	}
	// restrict_oom_score_adj: containers need CAP_SYS_RESOURCE else, which not every root
	// has. The disabled plugins write outside of root and state, or load what others left.
	return errors.Join(
		os.WriteFile(r.path("containerd.toml"), fmt.Appendf(nil, `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing"]

[grpc]
address = %q

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %q

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
enable_cdi = false

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%q]
conf_dir = %q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`, containerdSocket, pauseImage, cniPlugins, r.path("cni"), r.runc), 0o600),
		os.WriteFile(r.path("cni/10-bridge.conflist"), fmt.Appendf(nil, `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
    "ipam": {
      "type": "host-local", "dataDir": "/var/lib/cni/networks",
      "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, r.node.PodCIDRs()[0]), 0o600))
}

// writeKubeletConfig writes what the kubelet reads. Nobody but the API server
// reaches its port, so it asks nobody who they are; the machine's disk and memory
// are not its business, so it evicts nothing and keeps its images; and whoever kills
// a container to see what happens does not want to wait.
func (r *realNode) writeKubeletConfig() error {
	return os.WriteFile(r.path("kubelet.yaml"), fmt.Appendf(nil, `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
healthzPort: 0
containerRuntimeEndpoint: unix://%s
cgroupDriver: cgroupfs
cgroupRoot: %s
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
registerWithTaints: [{key: %s, value: "true", effect: NoSchedule}]
volumePluginDir: /var/lib/kubelet/volumeplugins
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
`, r.node.Addresses()[0], containerdSocket, r.ground.cgroup, RealTaint), 0o600)
}
