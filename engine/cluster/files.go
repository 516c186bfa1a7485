package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// contextName is the name of cluster, user and context in the kubeconfig.
const contextName = "kconverge-cluster"

// simulated is the annotation of nodes that kwok takes care of, as kwok's own
// `kwokctl scale node` gives it.
const simulated = "kwok.x-k8s.io/node=fake"

// zones are those that the nodes stand in, by turns.
var zones = [...]string{"zone-a", "zone-b", "zone-c"}

// stages are how kwok's pods live: those of kwok's kustomize/stage/pod/fast, with
// delays, so that pods are unready and terminating for a while as in life; and its
// kustomize/stage/node/heartbeat-with-lease.
//
//go:embed stages.yaml
var stages []byte

func (c *Cluster) path(name string) string { return filepath.Join(c.o.Dir, name) }

func (c *Cluster) writeFiles() error {
	raw, err := c.plane.Kubeconfig()
	if err != nil {
		return err
	}
	return errors.Join(c.writeCommands(), os.WriteFile(c.Kubeconfig(), raw, 0o600), os.WriteFile(c.path("stages.yaml"), stages, 0o600))
}

// writeProxyConfig writes the configuration of a node's kube-proxy and its
// kubeconfig, by which it has the rights of kube-proxy and no others
// (plugin/pkg/auth/authorizer/rbac/bootstrappolicy, system:node-proxier).
func (c *Cluster) writeProxyConfig(n *nodes.Node) error {
	kubeconfig, config := c.path(n.Name()+".kubeconfig"), c.path(n.Name()+".kube-proxy.yaml")
	if err := c.writeKubeconfig(n, kubeconfig, "system:kube-proxy"); err != nil {
		return err
	}
	c.configs[n.Name()] = config
	return os.WriteFile(config, fmt.Appendf(nil, `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: %s
hostnameOverride: %s
clusterCIDR: %s
clientConnection: {kubeconfig: %q}
# Limits of the whole machine are left alone.
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, modes[c.ModeOf(n.Name())].proxyMode, n.Name(), c.podCIDRs(), kubeconfig), 0o600)
}

// writeKubeconfig writes a kubeconfig for programs on a node, by a relay of their
// own. They have the rights of a user, or the administrator's when that is empty.
func (c *Cluster) writeKubeconfig(n *nodes.Node, file, user string) error {
	u, err := url.Parse(c.Config().Host)
	if err != nil {
		return err
	}
	r, err := newRelay(n, u.Host)
	if err != nil {
		return fmt.Errorf("let %s reach the API server: %w", n.Name(), err)
	}
	c.mu.Lock()
	c.relays = append(c.relays, r)
	c.mu.Unlock()
	raw, err := c.plane.Kubeconfig()
	if err != nil {
		return err
	}
	k, err := clientcmd.Load(raw)
	if err != nil {
		return err
	}
	for _, cluster := range k.Clusters {
		cluster.Server = "https://" + r.addr()
	}
	for _, u := range k.AuthInfos {
		u.Impersonate = user
	}
	return clientcmd.WriteToFile(*k, file)
}

// podCIDRs and serviceCIDRs are the ranges of each family, as the programs take
// them.
func (c *Cluster) podCIDRs() string { return c.ranges(nodes.DefaultPodCIDR, nodes.PodCIDRv6) }

func (c *Cluster) serviceCIDRs() string {
	return c.ranges(nodes.DefaultServiceCIDR, nodes.ServiceCIDRv6)
}

func (c *Cluster) ranges(v4, v6 netip.Prefix) string {
	if c.dualStack {
		return v4.String() + "," + v6.String()
	}
	return v4.String()
}

// register makes a Node as a kubelet does that has just become ready. kwok keeps
// its Lease from then on.
func register(ctx context.Context, client kubernetes.Interface, n *nodes.Node, zone string) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	now := metav1.Now().Rfc3339Copy()
	var cidrs []string // kwok gives a pod an address of each
	for _, p := range n.PodCIDRs() {
		cidrs = append(cidrs, p.String())
	}
	var addresses []corev1.NodeAddress
	for _, a := range n.Addresses() {
		addresses = append(addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	key, value, _ := strings.Cut(simulated, "=")
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name(), Annotations: map[string]string{key: value}, Labels: map[string]string{corev1.LabelHostname: n.Name(), corev1.LabelTopologyZone: zone}},
		Spec:       corev1.NodeSpec{PodCIDR: cidrs[0], PodCIDRs: cidrs},
		Status: corev1.NodeStatus{
			Phase:    corev1.NodeRunning, // kwok's stages go by it
			Capacity: capacity, Allocatable: capacity,
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: Version, OSImage: "kwok"},
			Addresses: append(addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.Name()}),
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "played by kwok",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
		},
	}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register %s: %w", n.Name(), err)
	}
	return nil
}
