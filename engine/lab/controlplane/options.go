package controlplane

import (
	"context"
	"errors"
	"io"
	"net"
)

// ErrNoKubelet is DialNode's for an address at which no kubelet answers.
var ErrNoKubelet = errors.New("no kubelet")

// Options say how to run a control plane.
type Options struct {
	// Programs are what Find has found.
	Programs *Programs
	// Name is the name of cluster, user and context in the kubeconfig.
	Name string
	// Port of the API server on 127.0.0.1; 0 takes a free one.
	Port int
	// PodCIDR and ServiceCIDR are the ranges of the pods' and the Services'
	// addresses; a dual-stack cluster's are "IPV4RANGE,IPV6RANGE".
	PodCIDR, ServiceCIDR string
	// AuditPolicy, when set, is the path of an audit policy of the API server's
	// (audit.k8s.io/v1, Policy), and AuditLog that of the file that it writes.
	AuditPolicy, AuditLog string
	// NoKubelets is what is answered to whoever asks the API server for what only
	// a node could tell (kubectl logs, exec, port-forward, proxy): no such request
	// leaves this process.
	NoKubelets string
	// DialNode connects for the API server to a node, as "NAME:PORT" or
	// "ADDRESS:PORT", or to a pod or Service as "ADDRESS:PORT", for clusters in which some nodes do have a kubelet; ErrNoKubelet
	// answers NoKubelets. nil has none. Safe for concurrent use.
	DialNode func(ctx context.Context, addr string) (net.Conn, error)
	// Log takes what the programs print, a line at a time; nil discards it. When
	// it is a file, errors name it.
	Log io.Writer
	// Guard is passed on to process.Command.
	Guard func(pgid int) (done func())
}

func (o Options) validate() error {
	switch {
	case o.Programs == nil:
		return errors.New("a control plane needs its programs: see Find")
	case o.Name == "":
		return errors.New("a control plane needs a name")
	case o.PodCIDR == "" || o.ServiceCIDR == "":
		return errors.New("a control plane needs the ranges of the pods' and the Services' addresses")
	}
	return nil
}
