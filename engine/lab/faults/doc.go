// Package faults holds what can be made to go wrong in the lab: which faults there
// are, what they are set to, and the hooks through which the lab's parts ask. Each
// acts where the real thing would (in the API server's request path, in a node's
// sync, in a probe), so what one sees of it comes through the ordinary collectors.
//
// The parts know nothing of faults: they have options that are functions or small
// interfaces, and engine/lab gives them methods of Faults. While no fault is set each
// of these is one atomic load.
//
// A fault is NAME=AMOUNT@TARGET (parse.go). Those that are set stand in the ConfigMap
// kconverge-faults of kube-system (configmap.go), so that kubectl and scripts can see
// and set them; the ConfigMap is the truth once the API server runs. That one begins
// or ends is a collect.Fault event.
//
// It may import collect, client-go, apimachinery and the types of k8s.io/apiserver's
// requests, and nothing else of this project. Start with catalogue.go (which there
// are), then faults.go.
package faults
