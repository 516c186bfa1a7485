package apiserver

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// compactEvery is how old history may get, half of kube-apiserver's: it is kept
// in memory here.
const compactEvery = 150 * time.Second

// etcdOptions tells each resource's store how to reach etcd. Objects are
// stored as protobuf, as kube-apiserver does.
type etcdOptions struct {
	server string
	codec  runtime.Codec
}

func newEtcdOptions(server string, scheme *apiScheme) (*etcdOptions, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, fmt.Errorf("the lab's API types have no %s encoding", runtime.ContentTypeProtobuf)
	}
	stored := schema.GroupVersions(versions)
	return &etcdOptions{
		server: server,
		codec:  scheme.codecs.CodecForVersions(info.Serializer, scheme.codecs.UniversalDeserializer(), stored, runtime.InternalGroupVersioner),
	}, nil
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o *etcdOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	c := storagebackend.NewDefaultConfig("/registry", o.codec)
	c.Transport.ServerList = []string{o.server}
	c.EncodeVersioner = schema.GroupVersions(versions)
	c.CompactionInterval = compactEvery
	return generic.RESTOptions{
		StorageConfig: c.ForResource(resource),
		Decorator:     patientStorage(),
		// Deletion policies become finalizers for the garbage collector.
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
	}, nil
}
