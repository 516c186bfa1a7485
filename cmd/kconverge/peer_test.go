package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// peerEnv names the kubeconfig of the cluster that this test program is to watch with
// nothing but client-go: what that costs is the least that any program pays which
// watches the same.
const peerEnv = "KCONVERGE_TEST_PEER"

// watchBarely watches, in protobuf, what `watch` does in a namespace, and does nothing
// with it. It returns when it cannot.
func watchBarely(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType, config.QPS = "application/vnd.kubernetes.protobuf", -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	all := []cache.SharedIndexInformer{
		f.Core().V1().Nodes().Informer(), f.Core().V1().Services().Informer(), f.Core().V1().Pods().Informer(),
		f.Core().V1().Endpoints().Informer(), f.Core().V1().Events().Informer(), f.Discovery().V1().EndpointSlices().Informer(),
		f.Apps().V1().Deployments().Informer(), f.Apps().V1().ReplicaSets().Informer(),
		f.Apps().V1().StatefulSets().Informer(), f.Apps().V1().DaemonSets().Informer(),
	}
	forever := make(chan struct{})
	f.Start(forever)
	for _, i := range all {
		cache.WaitForCacheSync(forever, i.HasSynced)
	}
	fmt.Fprintln(os.Stderr, "synced")
	<-forever
	return nil
}
