// Package openapi holds the generated OpenAPI definitions of every API type
// the lab's API server serves.
//
// Nothing here is written by hand but this file: `go generate` runs
// openapi-gen, at the version of k8s.io/kube-openapi in go.mod, over the API
// packages named below. kubectl needs the result for explain, apply, edit and
// replace, and the server needs it for server-side apply.
//
// It imports k8s.io/api, apimachinery and kube-openapi only. Start at
// GetOpenAPIDefinitions.
package openapi

//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --output-dir . --output-pkg github.com/kconverge/kconverge/engine/lab/apiserver/openapi --output-file zz_generated.openapi.go --go-header-file header.txt --report-filename /dev/null k8s.io/api/core/v1 k8s.io/api/apps/v1 k8s.io/api/batch/v1 k8s.io/api/discovery/v1 k8s.io/api/autoscaling/v1 k8s.io/api/authorization/v1 k8s.io/api/coordination/v1 k8s.io/api/events/v1 k8s.io/api/policy/v1 k8s.io/api/scheduling/v1alpha3 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
