package apiserver

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

func leases() *resource[*coordinationv1.Lease] {
	return &resource[*coordinationv1.Lease]{
		version: coordinationv1.SchemeGroupVersion, kind: "Lease", plural: "leases", singular: "lease",
		namespaced: true,
		name:       apivalidation.NameIsDNSSubdomain,
		newObject:  func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		newList:    func() runtime.Object { return &coordinationv1.LeaseList{} },
		columns: []column[*coordinationv1.Lease]{
			nameColumn[*coordinationv1.Lease](),
			col("Holder", func(l *coordinationv1.Lease) any {
				if l.Spec.HolderIdentity == nil {
					return ""
				}
				return *l.Spec.HolderIdentity
			}),
			ageColumn[*coordinationv1.Lease](),
		},
	}
}
