package lab

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/engine/lab/faults"
)

// clients are the ways of the lab's parts to the API server. They share connections,
// and differ in the name that they give themselves, by which faults tell them apart.
type clients struct {
	reconciler, workloads, kubelet, proxy kubernetes.Interface
	// screen is for what people ask for on the screen, own for what the lab itself
	// does, which no fault meets.
	screen, own kubernetes.Interface
	config      *rest.Config
}

func newClients(config *rest.Config) (*clients, error) {
	c := &clients{config: config}
	for name, to := range map[string]*kubernetes.Interface{
		faults.ClientReconciler: &c.reconciler, faults.ClientWorkloads: &c.workloads, faults.ClientKubelet: &c.kubelet,
		faults.ClientProxy: &c.proxy, faults.ClientScreen: &c.screen, faults.ClientOwn: &c.own,
	} {
		client, err := newClient(config, faults.UserAgent(name))
		if err != nil {
			return nil, err
		}
		*to = client
	}
	return c, nil
}

// proxyOf is for the own watch of one node's proxy.
func (c *clients) proxyOf(node string) (kubernetes.Interface, error) {
	return newClient(c.config, faults.NodeProxyAgent(node))
}

// newClient makes a client that gives itself a name.
func newClient(config *rest.Config, agent string) (kubernetes.Interface, error) {
	named := rest.CopyConfig(config)
	named.UserAgent = agent
	return kubernetes.NewForConfig(named)
}
