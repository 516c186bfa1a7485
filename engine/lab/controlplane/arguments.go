package controlplane

import (
	"net"
	"os"
	"slices"
	"strings"
)

// Names of the files in the directory.
const (
	caFile           = "ca.crt"
	servingCert      = "serving.crt"
	servingKey       = "serving.key"
	tokenPublicKey   = "service-accounts.pub"
	tokenPrivateKey  = "service-accounts.key"
	egressFile       = "egress.json"
	etcdSocket       = "etcd.sock"
	etcdPeerSocket   = "etcd-peer.sock"
	kubeletsSocket   = "kubelets.sock"
	etcdData         = "etcd"
	kubeconfigSuffix = ".kubeconfig"
)

// environment is what the programs see of ours: not what would set up etcd, which
// reads a variable for each of its flags, nor a proxy, since nothing leaves this
// machine.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		return strings.HasPrefix(name, "ETCD_") || strings.HasSuffix(name, "_PROXY")
	})
}

// arguments are the programs' command lines. in says where a program finds a file
// of the directory.
type arguments struct {
	o  Options
	in func(file string) string
}

func (a arguments) etcd() []string {
	client, peer := "unix://"+a.in(etcdSocket), "unix://"+a.in(etcdPeerSocket)
	return []string{
		"--name=lab", "--data-dir=" + a.in(etcdData),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=lab=" + peer,
		// What it holds ends with it.
		"--unsafe-no-fsync", "--max-wals=1",
		"--log-level=warn",
	}
}

// apiServer listens on port, which this process keeps: hence the sharing.
func (a arguments) apiServer(port string) []string {
	args := append(a.serving(port),
		"--advertise-address="+loopback,
		// The Service "kubernetes" has no endpoints: this address is nobody's but
		// this machine's, and no node may reach it.
		"--endpoint-reconciler-type=none",
		"--etcd-servers=unix://"+a.in(etcdSocket),
		"--client-ca-file="+a.in(caFile), "--anonymous-auth=false", "--authorization-mode=RBAC",
		// Nothing stands in front of it, so nobody has a certificate of this name; but
		// its clients that serve look for the authority.
		"--requestheader-client-ca-file="+a.in(caFile), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+a.in(tokenPublicKey), "--service-account-signing-key-file="+a.in(tokenPrivateKey),
		"--service-cluster-ip-range="+a.o.ServiceCIDR,
		"--egress-selector-config-file="+a.in(egressFile),
		"--allow-privileged=true",
	)
	if a.o.AuditPolicy != "" {
		args = append(args, "--audit-policy-file="+a.o.AuditPolicy, "--audit-log-path="+a.o.AuditLog)
	}
	return args
}

// controllerManager keeps its client's limits (20 requests a second, 30 at once)
// although its start takes 5 s by them: they are part of how it converges.
func (a arguments) controllerManager(port string) []string {
	return append(a.client(ControllerManager, a.serving(port)),
		"--root-ca-file="+a.in(caFile), "--service-account-private-key-file="+a.in(tokenPrivateKey),
		"--use-service-account-credentials",
		"--cluster-cidr="+a.o.PodCIDR, "--service-cluster-ip-range="+a.o.ServiceCIDR,
		// Nodes come with their ranges.
		"--allocate-node-cidrs=false",
	)
}

func (a arguments) scheduler(port string) []string {
	return a.client(Scheduler, a.serving(port))
}

func (a arguments) serving(port string) []string {
	return []string{
		"--bind-address=" + loopback, "--secure-port=" + port, "--permit-port-sharing",
		"--tls-cert-file=" + a.in(servingCert), "--tls-private-key-file=" + a.in(servingKey),
		"--profiling=false",
	}
}

// client is what a client of the API server needs that also serves: whoever asks
// it something is looked up there.
func (a arguments) client(name string, args []string) []string {
	k := a.in(name + kubeconfigSuffix)
	return append(args,
		"--kubeconfig="+k, "--authentication-kubeconfig="+k, "--authorization-kubeconfig="+k,
		"--leader-elect=false",
	)
}

func hostPort(port string) string { return net.JoinHostPort(loopback, port) }
