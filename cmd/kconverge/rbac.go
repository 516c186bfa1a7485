package main

import (
	"fmt"
	"strings"

	"github.com/kconverge/kconverge/collect/kube"
)

// agentsRole is what is needed to follow the agents' logs.
func agentsRole(namespace string) string {
	return fmt.Sprintf(`# What is needed to follow the agents' logs.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: kconverge-agent-logs
  namespace: %q
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
`, namespace)
}

// itself lets a viewer see whether a namespace exists. One who may watch all can name
// one too: wait does.
const itself = `- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
`

// viewerRoles are the rights of a viewer of some namespaces, or of all.
func viewerRoles(namespaces []string) string {
	cluster, inside := policyRules(func(r kube.Right) bool { return !r.Namespaced }), policyRules(func(r kube.Right) bool { return r.Namespaced })
	var b strings.Builder
	if len(namespaces) == 0 {
		b.WriteString("# What is needed to watch every namespace.\n")
		b.WriteString(role("ClusterRole", "kconverge-viewer", "", cluster+inside+itself))
		return b.String()
	}
	b.WriteString("# What is needed to watch the chosen namespace: nodes belong to none.\n")
	b.WriteString(role("ClusterRole", "kconverge-viewer-nodes", "", cluster))
	for _, ns := range namespaces {
		b.WriteString("---\n" + role("Role", "kconverge-viewer", ns, inside+itself))
	}
	return b.String()
}

func role(kind, name, namespace, rules string) string {
	head := "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
	if namespace != "" {
		head += fmt.Sprintf("  namespace: %q\n", namespace) // 123 and true are names, too
	}
	return head + "rules:\n" + rules
}

// policyRules groups the resources by API group, in the order in which they are
// read.
func policyRules(want func(kube.Right) bool) string {
	var groups []string
	by := map[string][]string{}
	for _, r := range kube.Rights() {
		if !want(r) {
			continue
		}
		if by[r.Resource.Group] == nil {
			groups = append(groups, r.Resource.Group)
		}
		by[r.Resource.Group] = append(by[r.Resource.Group], r.Resource.Resource)
	}
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%s]\n  verbs: [get, list, watch]\n", g, strings.Join(by[g], ", "))
	}
	return b.String()
}
