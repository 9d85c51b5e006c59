// Built inside a Kubernetes source tree: a small API server in memory, whose writes become watch events.
package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
)

// recordingStart is the moment at which every recording begins.
var recordingStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

var (
	errNotFound  = errors.New("not found")
	errExists    = errors.New("already exists")
	errImmutable = errors.New("rejected: spec.nodeName is immutable")
)

type objectKey struct{ kind, name string }

// watchEvent is an object as it was after a write, or, if deleted, before it.
type watchEvent struct {
	key     objectKey
	obj     runtime.Object
	deleted bool
}

// apiServer holds the objects. It is used by one goroutine at a time, but not always by the same one.
type apiServer struct {
	lock      sync.Mutex
	objects   map[objectKey]runtime.Object
	version   int
	unseen    []watchEvent
	informers map[string]*handFedInformer
	delivered []string
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[objectKey]runtime.Object{}}
}

// decode reads an object of a case.
func decode(given []byte) (objectKey, runtime.Object, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(given, &head); err != nil {
		return objectKey{}, nil, err
	}
	kind, ok := recordedKinds[head.Kind]
	if !ok {
		return objectKey{}, nil, fmt.Errorf("a recording cannot have objects of kind %q", head.Kind)
	}
	obj := kind.empty.DeepCopyObject()
	if err := json.Unmarshal(given, obj); err != nil {
		return objectKey{}, nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	fillIn(obj)
	return objectKey{head.Kind, nameOf(obj)}, obj, nil
}

// fillIn gives an object what an API server does, if no API server has seen it.
func fillIn(obj runtime.Object) {
	switch obj := obj.(type) {
	case *v1.Pod:
		if obj.Spec.SchedulerName == "" { // every pod that is stored has one
			corev1.SetObjectDefaults_Pod(obj)
		}
	case *resourcev1.ResourceClaim: // what is left out of requests is never stored so
		resourcedefaults.SetObjectDefaults_ResourceClaim(obj)
	}
}

func (a *apiServer) get(key objectKey) (runtime.Object, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if obj, ok := a.objects[key]; ok {
		return obj, nil
	}
	return nil, errNotFound
}

func (a *apiServer) create(key objectKey, obj runtime.Object) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	if _, ok := a.objects[key]; ok {
		return errExists
	}
	a.store(key, obj)
	return nil
}

// replace stores what the caller made of a copy.
func (a *apiServer) replace(key objectKey, obj runtime.Object) (runtime.Object, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if _, ok := a.objects[key]; !ok {
		return nil, errNotFound
	}
	return a.store(key, obj), nil
}

// change stores what an edit makes of a copy of the object.
func (a *apiServer) change(key objectKey, edit func(runtime.Object)) error {
	old, err := a.get(key)
	if err != nil {
		return err
	}
	edited := old.DeepCopyObject()
	edit(edited)
	_, err = a.replace(key, edited)
	return err
}

// merge applies a JSON merge patch.
func (a *apiServer) merge(key objectKey, patch []byte) error {
	return a.patch(key, func(document []byte, _ runtime.Object) ([]byte, error) {
		return jsonpatch.MergePatch(document, patch)
	})
}

// mergeStrategically applies the kind of patch that the scheduler sends.
func (a *apiServer) mergeStrategically(key objectKey, patch []byte) error {
	return a.patch(key, strategic(patch))
}

type merger func(document []byte, empty runtime.Object) ([]byte, error)

func strategic(patch []byte) merger {
	return func(document []byte, empty runtime.Object) ([]byte, error) {
		return strategicpatch.StrategicMergePatch(document, patch, empty)
	}
}

func (a *apiServer) patch(key objectKey, merge merger) error {
	obj, err := a.patched(key, merge)
	if err != nil {
		return err
	}
	_, err = a.replace(key, obj)
	return err
}

// patched is what a patch would make of an object.
func (a *apiServer) patched(key objectKey, merge merger) (runtime.Object, error) {
	old, err := a.get(key)
	if err != nil {
		return nil, err
	}
	document, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	empty := recordedKinds[key.kind].empty
	merged, err := merge(document, empty)
	if err != nil {
		return nil, err
	}
	obj := empty.DeepCopyObject()
	if err := json.Unmarshal(merged, obj); err != nil {
		return nil, err
	}
	if pod, ok := old.(*v1.Pod); ok && pod.Spec.NodeName != "" && obj.(*v1.Pod).Spec.NodeName != pod.Spec.NodeName {
		return nil, errImmutable
	}
	return obj, nil
}

func (a *apiServer) remove(key objectKey) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	obj, ok := a.objects[key]
	if !ok {
		return errNotFound
	}
	delete(a.objects, key)
	a.unseen = append(a.unseen, watchEvent{key, obj, true})
	return nil
}

// store needs the lock.
func (a *apiServer) store(key objectKey, obj runtime.Object) runtime.Object {
	a.version++
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	accessor.SetResourceVersion(strconv.Itoa(a.version))
	a.objects[key] = obj
	a.unseen = append(a.unseen, watchEvent{key, obj, false})
	return obj
}

// deliver tells the informers what happened since the last time, in order.
func (a *apiServer) deliver() {
	for {
		a.lock.Lock()
		if len(a.unseen) == 0 {
			a.lock.Unlock()
			return
		}
		event := a.unseen[0]
		a.unseen = a.unseen[1:]
		a.lock.Unlock()
		a.tell(event)
	}
}

// tell is an informer that does not select finished pods: to it they are deleted.
func (a *apiServer) tell(event watchEvent) {
	informer := a.informers[event.key.kind]
	selected := !event.deleted
	if pod, ok := event.obj.(*v1.Pod); ok {
		selected = selected && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
	}
	old := informer.known(event.key.name)
	verb := "MODIFIED"
	switch {
	case !selected && old == nil:
		return
	case !selected:
		verb = "DELETED"
	case old == nil:
		verb = "ADDED"
	}
	a.delivered = append(a.delivered, fmt.Sprintf("%s %s %s", verb, event.key.kind, event.key.name))
	if !selected {
		informer.tell(event.obj, nil)
		return
	}
	informer.tell(old, event.obj)
}
