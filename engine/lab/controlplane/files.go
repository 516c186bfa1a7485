package controlplane

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kconverge/kconverge/engine/lab/pki"
)

// files writes what the programs read into a directory that only this user can.
type files struct {
	dir string // as this process finds it
	in  func(file string) string
	o   Options
	url string // of the API server
	ca  *pki.Authority
}

// write makes every file and returns the administrator's configuration.
func (f *files) write() (*rest.Config, error) {
	var err error
	// Certificates are checked against the real time.
	if f.ca, err = pki.NewAuthority(f.o.Name+"-ca", time.Now()); err != nil {
		return nil, err
	}
	first, err := firstAddress(f.o.ServiceCIDR)
	if err != nil {
		return nil, err
	}
	serving, err := f.ca.Server(f.o.Name, loopback, "::1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", first)
	if err != nil {
		return nil, err
	}
	tokens, err := pki.NewKeys()
	if err != nil {
		return nil, err
	}
	egress, err := f.egress()
	if err != nil {
		return nil, err
	}
	content := map[string][]byte{
		caFile: f.ca.PEM(), servingCert: serving.Public, servingKey: serving.Private,
		tokenPublicKey: tokens.Public, tokenPrivateKey: tokens.Private, egressFile: egress,
	}
	for _, name := range []string{ControllerManager, Scheduler} {
		c, err := f.config("system:" + name)
		if err != nil {
			return nil, err
		}
		if content[name+kubeconfigSuffix], err = kubeconfig(name, c); err != nil {
			return nil, err
		}
	}
	for name, b := range content {
		if err := os.WriteFile(filepath.Join(f.dir, name), b, 0o600); err != nil {
			return nil, fmt.Errorf("write the control plane's files: %w", err)
		}
	}
	// Who may do everything (k8s.io/kubernetes
	// plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
	return f.config(f.o.Name, "system:masters")
}

// config is a client configuration for a user of the groups.
func (f *files) config(user string, groups ...string) (*rest.Config, error) {
	pair, err := f.ca.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            f.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: f.ca.PEM(), CertData: pair.Public, KeyData: pair.Private},
	}, nil
}

// egress sends what the API server would ask of nodes, pods and Services to this
// process (apiserver.k8s.io/v1beta1, EgressSelectorConfiguration): by itself it
// would look for their addresses in this machine's own network.
func (f *files) egress() ([]byte, error) {
	type m = map[string]any
	return json.Marshal(m{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
		"egressSelections": []m{{
			"name": "cluster",
			"connection": m{
				"proxyProtocol": "HTTPConnect",
				"transport":     m{"uds": m{"udsName": f.in(kubeletsSocket)}},
			},
		}},
	})
}

// kubeconfig is a self-contained kubeconfig with one context.
func kubeconfig(name string, c *rest.Config) ([]byte, error) {
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	out.CurrentContext = name
	b, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return b, nil
}

// firstAddress is the one that the Service "kubernetes" gets.
func firstAddress(ranges string) (string, error) {
	cidr, _, _ := strings.Cut(ranges, ",")
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("the range of the Services' addresses: %w", err)
	}
	return p.Masked().Addr().Next().String(), nil
}
