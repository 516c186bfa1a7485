package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// configMaps are refused when check finds something wrong in them; it may be nil.
func configMaps(check func(*corev1.ConfigMap) error) *resource[*corev1.ConfigMap] {
	return &resource[*corev1.ConfigMap]{
		version: corev1.SchemeGroupVersion, kind: "ConfigMap", plural: "configmaps", singular: "configmap",
		short: []string{"cm"}, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		newList:   func() runtime.Object { return &corev1.ConfigMapList{} },
		columns: []column[*corev1.ConfigMap]{
			nameColumn[*corev1.ConfigMap](),
			col("Data", func(c *corev1.ConfigMap) any { return int64(len(c.Data) + len(c.BinaryData)) }),
			ageColumn[*corev1.ConfigMap](),
		},
		rules: rules[*corev1.ConfigMap]{
			validate: func(c *corev1.ConfigMap) field.ErrorList {
				if check == nil {
					return nil
				}
				if err := check(c); err != nil {
					return field.ErrorList{field.Invalid(field.NewPath("data"), field.OmitValueType{}, err.Error())}
				}
				return nil
			},
			validateUpdate: func(c, old *corev1.ConfigMap) field.ErrorList {
				return immutable(old.Immutable, c.Data, old.Data, c.BinaryData, old.BinaryData)
			},
		},
	}
}

func secrets() *resource[*corev1.Secret] {
	return &resource[*corev1.Secret]{
		version: corev1.SchemeGroupVersion, kind: "Secret", plural: "secrets", singular: "secret",
		namespaced: true,
		name:       apivalidation.NameIsDNSSubdomain,
		newObject:  func() *corev1.Secret { return &corev1.Secret{} },
		newList:    func() runtime.Object { return &corev1.SecretList{} },
		fields: map[string]func(*corev1.Secret) string{
			"type": func(s *corev1.Secret) string { return string(s.Type) },
		},
		columns: []column[*corev1.Secret]{
			nameColumn[*corev1.Secret](),
			col("Type", func(s *corev1.Secret) any { return string(s.Type) }),
			col("Data", func(s *corev1.Secret) any { return int64(len(s.Data)) }),
			ageColumn[*corev1.Secret](),
		},
		rules: rules[*corev1.Secret]{
			create: mergeStringData,
			update: func(s, _ *corev1.Secret) { mergeStringData(s) },
			validateUpdate: func(s, old *corev1.Secret) field.ErrorList {
				errs := immutable(old.Immutable, s.Data, old.Data)
				if s.Type != old.Type {
					errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, "field is immutable"))
				}
				return errs
			},
		},
	}
}

// mergeStringData moves what was written as text into data.
func mergeStringData(s *corev1.Secret) {
	for k, v := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}
