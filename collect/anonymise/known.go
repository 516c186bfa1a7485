package anonymise

import (
	"regexp"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// knownWords are those of Kubernetes and kconverge themselves that events have in the
// place of an enumeration: kinds, phases, reasons, modes, steps. What is not among
// them is somebody's own.
var knownWords = set(`
listed added modified deleted gone
TCP UDP SCTP IPv4 IPv6 Cluster Local ClusterIP NodePort ExternalIP LoadBalancer ExternalName None ClientIP
PreferClose PreferSameZone PreferSameNode
Pod Service EndpointSlice Endpoints Node Deployment ReplicaSet StatefulSet DaemonSet Job CronJob Event Namespace ReplicationController Lease
Pending Running Succeeded Failed Unknown
starting listing synced broken forbidden stopped
list bookmark check heartbeat
cluster lab recording none agents user
endpointslice endpoints mirroring
queued started wrote conflict unchanged retry dropped
received waiting committed failed
nftables iptables ipvs
one-clock synchronised logs nothing
endpointslice-controller.k8s.io endpointslicemirroring-controller.k8s.io
kube-proxy kubelet kube-scheduler default-scheduler deployment-controller replicaset-controller statefulset-controller
daemonset-controller endpoint-controller endpoint-slice-controller endpoint-slice-mirroring-controller node-controller
taint-eviction-controller service-controller iptables-restore iptables-nft-restore nft kconverge
kube-proxy-nftables kube-proxy-iptables kube-proxy-iptables-nft kube-proxy-iptables-legacy flat
address-reuse api-delay api-error clock-skew conflict event-lost listen-delay node-death node-grace prestop probe-fail probe-period
reconcile-delay reconcile-fail resync start-delay stop-early sync-delay sync-fail watch-delay watch-drop watch-hang workers
refused timeout reset unreachable
Normal Warning
Unschedulable SchedulingGated PodCompleted PodFailed ContainersNotReady ContainersNotInitialized ReadinessGatesNotReady
EvictionByEvictionAPI PreemptionByScheduler PreemptionByKubeScheduler DeletionByTaintManager DeletionByPodGC TerminationByKubelet
CrashLoopBackOff ImagePullBackOff ErrImagePull ErrImageNeverPull InvalidImageName CreateContainerConfigError CreateContainerError
RunContainerError ContainerCreating PodInitializing ImageInspectError RegistryUnavailable PostStartHookError StartError
KubeletReady KubeletNotReady NodeStatusUnknown NodeStatusNeverUpdated
Unhealthy Killing Pulled Pulling Created Started Scheduled FailedScheduling BackOff Preempted Evicted FailedMount FailedAttachVolume
FailedCreatePodSandBox SandboxChanged FailedKillPod FailedPreStopHook FailedPostStartHook ProbeWarning NodeNotReady NodeReady NodeNotSchedulable
NodeSchedulable NodeHasSufficientMemory NodeHasDiskPressure RegisteredNode RemovingNode DeletingNode TaintManagerEviction
ScalingReplicaSet SuccessfulCreate SuccessfulDelete FailedCreate FailedDelete SuccessfulRescale
FailedToUpdateEndpointSlices FailedToUpdateEndpoint FailedToCreateEndpoint
`, "one clock", "causes and logs", collect.NoRules, collect.OwnControlPlane)

func set(words string, more ...string) map[string]bool {
	out := map[string]bool{}
	for _, w := range append(strings.Fields(words), more...) {
		out[w] = true
	}
	return out
}

// known keeps a word of knownWords and replaces any other.
func (a *Anonymiser) known(s string) string {
	if s == "" || knownWords[s] {
		return s
	}
	return a.names.of(word, s)
}

// knownKeys are label keys that Kubernetes, or custom, give the same meaning anywhere.
var knownKeys = set(`
app name k8s-app run component tier role version environment release
app.kubernetes.io/name app.kubernetes.io/instance app.kubernetes.io/version app.kubernetes.io/component app.kubernetes.io/part-of
app.kubernetes.io/managed-by helm.sh/chart pod-template-hash controller-revision-hash pod-template-generation
statefulset.kubernetes.io/pod-name apps.kubernetes.io/pod-index batch.kubernetes.io/job-name batch.kubernetes.io/controller-uid
batch.kubernetes.io/job-completion-index job-name controller-uid
kubernetes.io/hostname kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch kubernetes.io/metadata.name
topology.kubernetes.io/region topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone
node.kubernetes.io/instance-type beta.kubernetes.io/instance-type node.kubernetes.io/exclude-from-external-load-balancers
node-role.kubernetes.io/control-plane node-role.kubernetes.io/master node-role.kubernetes.io/worker node-role.kubernetes.io/node
kubernetes.io/service-name endpointslice.kubernetes.io/managed-by endpointslice.kubernetes.io/skip-mirror
service.kubernetes.io/headless service.kubernetes.io/service-proxy-name kubernetes.io/cluster-service addonmanager.kubernetes.io/mode
provider component
`)

// key replaces a label key that is not well known. Two with the same name under
// different domains, or without one, have so afterwards.
func (a *Anonymiser) key(k string) string {
	if knownKeys[k] {
		return k
	}
	domain, name, split := strings.Cut(k, "/")
	if !split {
		return a.names.of(labelKey, k)
	}
	if !knownKeys[name] {
		name = a.names.of(labelKey, name)
	}
	return a.names.of(labelKey, domain) + "/" + name
}

// versionCore is what a version has before it says who built it.
var versionCore = regexp.MustCompile(`^v?[0-9]{1,4}(\.[0-9]{1,6}){1,3}`)

// version keeps the numbers of a version.
func (a *Anonymiser) version(s string) string {
	if core := versionCore.FindString(s); core != "" {
		return core
	}
	switch s {
	case "", "devel", "(devel)", "unknown":
		return s
	}
	return a.names.of(word, s)
}

// format keeps the name of a recording's format.
func (a *Anonymiser) format(s string) string {
	if n, ok := strings.CutPrefix(s, "kconverge.recording/v"); ok && len(n) < 4 && strings.Trim(n, "0123456789") == "" {
		return s
	}
	return a.names.of(word, s)
}

// knownSources are those that are named alike everywhere, nodePrefixes begin those of
// a node.
var (
	knownSources = set(`
kube/pods kube/services kube/endpointslices kube/endpoints kube/nodes kube/deployments kube/replicasets kube/statefulsets kube/daemonsets
kube/events engine/reconciler clock user agents recording`)
	nodePrefixes = []string{collect.SourceRulesPrefix, collect.SourceRuleSyncPrefix, collect.SourceAgentPrefix}
)

// source keeps what kind of source it is.
func (a *Anonymiser) source(s string) string {
	if s == "" || knownSources[s] {
		return s
	}
	for _, p := range nodePrefixes {
		if n, ok := strings.CutPrefix(s, p); ok {
			return p + a.names.of(node, n)
		}
	}
	return a.text(s)
}
