// Built inside a Kubernetes source tree: the client that the scheduler under record gets, for the API server in memory.
package scheduler

import (
	"context"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

// podWriter is what becomes of the scheduler's writes to pods.
type podWriter interface {
	bind(binding *v1.Binding) error
	patchStatus(name string, patch []byte) error
	evict(name string) error
}

// recordedClient goes to a podWriter for pods, and to `written` for everything else.
type recordedClient struct {
	kubernetes.Interface
	pods podWriter
}

// newRecordedClient reads from the API server and writes to it. `written` is called before each write of another kind
// than pods and says whether the write is made; `settled` is called after it.
func newRecordedClient(api *apiServer, pods podWriter, written func(verb string, obj metav1.Object) bool, settled func(objectKey)) kubernetes.Interface {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		obj, err := react(api, action, written, settled)
		return true, obj, err
	})
	return recordedClient{client, pods}
}

func react(api *apiServer, action clienttesting.Action, written func(string, metav1.Object) bool, settled func(objectKey)) (runtime.Object, error) {
	kind := kindOf(action.GetResource().Resource)
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		obj, err := api.get(objectKey{kind, qualified(action.GetNamespace(), action.GetName())})
		if err != nil {
			return nil, asStatus(err, action, action.GetName())
		}
		return obj.DeepCopyObject(), nil
	case clienttesting.DeleteActionImpl:
		key := objectKey{kind, qualified(action.GetNamespace(), action.GetName())}
		obj, err := api.get(key)
		if err != nil {
			return nil, asStatus(err, action, action.GetName())
		}
		if written("delete", obj.(metav1.Object)) {
			err = api.remove(key)
			settled(key)
		}
		return nil, err
	case clienttesting.CreateActionImpl:
		obj := action.GetObject().DeepCopyObject()
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if accessor.GetName() == "" {
			accessor.SetName(accessor.GetGenerateName() + "0")
			accessor.SetUID(types.UID("uid-" + accessor.GetName()))
		}
		key := objectKey{kind, nameOf(obj)}
		if written("create", accessor) {
			err = api.create(key, obj)
			settled(key)
		}
		return obj.DeepCopyObject(), asStatus(err, action, accessor.GetName())
	case clienttesting.UpdateActionImpl:
		return update(api, action, action.GetObject().DeepCopyObject(), written, settled)
	case clienttesting.PatchActionImpl:
		key := objectKey{kind, qualified(action.GetNamespace(), action.GetName())}
		obj, err := api.patched(key, strategic(action.GetPatch()))
		if err != nil {
			return nil, asStatus(err, action, key.name)
		}
		return update(api, action, obj, written, settled)
	}
	return nil, errors.New("a recording cannot " + action.GetVerb() + " " + action.GetResource().Resource)
}

func update(api *apiServer, action clienttesting.Action, obj runtime.Object, written func(string, metav1.Object) bool, settled func(objectKey)) (runtime.Object, error) {
	key := objectKey{kindOf(action.GetResource().Resource), nameOf(obj)}
	if !written("update", obj.(metav1.Object)) {
		return obj, nil
	}
	if _, err := api.replace(key, obj); err != nil {
		return nil, asStatus(err, action, key.name)
	}
	settled(key)
	return obj.DeepCopyObject(), nil
}

func kindOf(resource string) string {
	for name, kind := range recordedKinds {
		if kind.resource == resource {
			return name
		}
	}
	panic("a recording cannot have " + resource)
}

func qualified(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

func asStatus(err error, action clienttesting.Action, name string) error {
	resource := schema.GroupResource{Group: action.GetResource().Group, Resource: action.GetResource().Resource}
	switch {
	case errors.Is(err, errNotFound):
		return apierrors.NewNotFound(resource, name)
	case errors.Is(err, errExists):
		return apierrors.NewAlreadyExists(resource, name)
	}
	return err
}

// claimVerb says what a write to a claim amounts to.
func claimVerb(before, after *resourcev1.ResourceClaim) string {
	switch {
	case before.Status.Allocation != nil && after.Status.Allocation == nil:
		return "deallocate"
	case len(before.Status.ReservedFor) > len(after.Status.ReservedFor):
		return "unreserve"
	}
	return ""
}

func (c recordedClient) CoreV1() corev1.CoreV1Interface {
	return recordedCore{c.Interface.CoreV1(), c.pods}
}

type recordedCore struct {
	corev1.CoreV1Interface
	pods podWriter
}

func (c recordedCore) Pods(namespace string) corev1.PodInterface {
	return recordedPods{c.CoreV1Interface.Pods(namespace), namespace, c.pods}
}

type recordedPods struct {
	corev1.PodInterface
	namespace string
	writer    podWriter
}

func (p recordedPods) Bind(_ context.Context, binding *v1.Binding, _ metav1.CreateOptions) error {
	return p.writer.bind(binding)
}

func (p recordedPods) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*v1.Pod, error) {
	return nil, p.writer.patchStatus(qualified(p.namespace, name), patch)
}

func (p recordedPods) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	return p.writer.evict(qualified(p.namespace, name))
}
