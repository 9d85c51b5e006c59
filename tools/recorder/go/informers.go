// Built inside a Kubernetes source tree: informers that tell their handlers at once, in order, in the caller's goroutine.
package scheduler

import (
	"slices"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// recordedKinds are the kinds that a case may have, each with the resource that clients call it by.
var recordedKinds = map[string]struct {
	empty    runtime.Object
	resource string
}{
	"Pod":                   {&v1.Pod{}, "pods"},
	"Node":                  {&v1.Node{}, "nodes"},
	"Namespace":             {&v1.Namespace{}, "namespaces"},
	"Service":               {&v1.Service{}, "services"},
	"ReplicationController": {&v1.ReplicationController{}, "replicationcontrollers"},
	"PersistentVolume":      {&v1.PersistentVolume{}, "persistentvolumes"},
	"PersistentVolumeClaim": {&v1.PersistentVolumeClaim{}, "persistentvolumeclaims"},
	"ReplicaSet":            {&appsv1.ReplicaSet{}, "replicasets"},
	"StatefulSet":           {&appsv1.StatefulSet{}, "statefulsets"},
	"PodDisruptionBudget":   {&policyv1.PodDisruptionBudget{}, "poddisruptionbudgets"},
	"StorageClass":          {&storagev1.StorageClass{}, "storageclasses"},
	"CSINode":               {&storagev1.CSINode{}, "csinodes"},
	"CSIDriver":             {&storagev1.CSIDriver{}, "csidrivers"},
	"CSIStorageCapacity":    {&storagev1.CSIStorageCapacity{}, "csistoragecapacities"},
	"VolumeAttachment":      {&storagev1.VolumeAttachment{}, "volumeattachments"},
	"ResourceSlice":         {&resourcev1.ResourceSlice{}, "resourceslices"},
	"DeviceClass":           {&resourcev1.DeviceClass{}, "deviceclasses"},
	"ResourceClaim":         {&resourcev1.ResourceClaim{}, "resourceclaims"},
}

// recordedInformers makes a factory whose informers of recordedKinds are fed by hand; all others stay empty.
func recordedInformers(client kubernetes.Interface) (informers.SharedInformerFactory, map[string]*handFedInformer) {
	factory := informers.NewSharedInformerFactory(client, 0)
	byKind := map[string]*handFedInformer{}
	for name, kind := range recordedKinds {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		informer := &handFedInformer{
			SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, kind.empty, 0, indexers),
			indexer:             sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)},
		}
		byKind[name] = informer
		factory.InformerFor(kind.empty, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return informer
		})
	}
	return factory, byKind
}

// handFedInformer is never run. What it embeds has the methods that nobody calls.
type handFedInformer struct {
	cache.SharedIndexInformer
	indexer  sortedIndexer
	handlers []cache.ResourceEventHandler
}

// handFed is the registration of a handler: it has always seen everything.
type handFed struct {
	cache.ResourceEventHandlerRegistration
}

func (handFed) HasSynced() bool                     { return true }
func (handFed) HasSyncedChecker() cache.DoneChecker { return done{} }

// done is what there is to wait for: nothing.
type done struct{}

func (done) Name() string { return "fed by hand" }

func (done) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

func (i *handFedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return handFed{}, nil
}

func (i *handFedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *handFedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *handFedInformer) AddIndexers(indexers cache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}
func (i *handFedInformer) GetIndexer() cache.Indexer { return i.indexer }
func (i *handFedInformer) GetStore() cache.Store     { return i.indexer }
func (i *handFedInformer) HasSynced() bool           { return true }

// tell brings the store up to date, then the handlers: added without old, deleted without new.
func (i *handFedInformer) tell(old, new runtime.Object) {
	var err error
	switch {
	case new == nil:
		err = i.indexer.Delete(old)
	case old == nil:
		err = i.indexer.Add(new)
	default:
		err = i.indexer.Update(new)
	}
	if err != nil {
		panic(err)
	}
	for _, handler := range i.handlers {
		switch {
		case new == nil:
			handler.OnDelete(old)
		case old == nil:
			handler.OnAdd(new, false)
		default:
			handler.OnUpdate(old, new)
		}
	}
}

// known is what the informer has of an object, nil if nothing.
func (i *handFedInformer) known(key string) runtime.Object {
	obj, found, err := i.indexer.GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return obj.(runtime.Object)
}

// sortedIndexer lists by namespace and name, as etcd does, where a plain one has the order of a map.
type sortedIndexer struct {
	cache.Indexer
}

func (s sortedIndexer) List() []any { return sortedObjects(s.Indexer.List()) }

func (s sortedIndexer) Index(name string, obj any) ([]any, error) {
	found, err := s.Indexer.Index(name, obj)
	return sortedObjects(found), err
}

func (s sortedIndexer) ByIndex(name, value string) ([]any, error) {
	found, err := s.Indexer.ByIndex(name, value)
	return sortedObjects(found), err
}

func sortedObjects(objects []any) []any {
	sort.Slice(objects, func(i, j int) bool { return compareKeys(objects[i], objects[j]) < 0 })
	return objects
}

func compareKeys(a, b any) int {
	left, right := keyOf(a), keyOf(b)
	return slices.Compare(left[:], right[:])
}

// keyOf is namespace and name.
func keyOf(obj any) [2]string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return [2]string{accessor.GetNamespace(), accessor.GetName()}
}

// nameOf is "namespace/name", or "name" of what has no namespace.
func nameOf(obj any) string {
	key := keyOf(obj)
	return strings.TrimPrefix(key[0]+"/"+key[1], "/")
}
