// Built inside a Kubernetes source tree: what a scheduler under record writes, as an API server would take it, or refuse it.
package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

type boundEntry struct {
	Pod   string `json:"pod"`
	Node  string `json:"node"`
	Error string `json:"error,omitempty"`
}

type patchEntry struct {
	Pod               string  `json:"pod"`
	Type              string  `json:"type,omitempty"`
	Status            string  `json:"status,omitempty"`
	Reason            string  `json:"reason,omitempty"`
	Message           string  `json:"message,omitempty"`
	NominatedNodeName *string `json:"nominatedNodeName,omitempty"`
}

type eventEntry struct {
	Object string `json:"object"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Action string `json:"action"`
	Note   string `json:"note"`
}

// bind is the binding subresource; a binding that is to be held stops here.
func (l *queueLife) bind(binding *v1.Binding) error {
	if attempt := l.binding; attempt != nil && attempt.reached != nil {
		close(attempt.reached)
		attempt.reached = nil
		<-attempt.release
	}
	name := qualified(binding.Namespace, binding.Name)
	entry := &boundEntry{Pod: name, Node: binding.Target.Name}
	l.step.Bound = append(l.step.Bound, entry)
	if err := l.refuseBinding(name, binding); err != nil {
		entry.Error = err.Error()
		return err
	}
	l.bindings++
	started := metav1.NewTime(recordingStart.Add(time.Duration(l.bindings) * time.Second))
	return l.api.change(objectKey{"Pod", name}, func(obj apiruntime.Object) {
		pod := obj.(*v1.Pod)
		pod.Spec.NodeName = binding.Target.Name
		pod.Status.NominatedNodeName, pod.Status.StartTime = "", &started
		setCondition(pod, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	})
}

func (l *queueLife) refuseBinding(name string, binding *v1.Binding) error {
	resource := schema.GroupResource{Resource: "pods/binding"}
	conflict := func(why string) error {
		return apierrors.NewConflict(resource, binding.Name, errors.New(why))
	}
	code := take(l.bindFailures, name)
	if code == 409 {
		return conflict("injected conflict")
	}
	stored, err := l.api.get(objectKey{"Pod", name})
	if code == 404 || err != nil && code == 0 {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, binding.Name)
	}
	if code != 0 {
		return apierrors.NewInternalError(errors.New("injected error"))
	}
	pod := stored.(*v1.Pod)
	switch {
	case pod.UID != binding.UID:
		return conflict(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID))
	case pod.DeletionTimestamp != nil:
		return conflict(fmt.Sprintf("pod %v is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return conflict(fmt.Sprintf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	case len(pod.Spec.SchedulingGates) > 0:
		return conflict(fmt.Sprintf("pod %v has non-empty .spec.schedulingGates", pod.Name))
	}
	return nil
}

// patchStatus applies what the scheduler sends about a pod.
func (l *queueLife) patchStatus(name string, patch []byte) error {
	defer l.preemptionWrites()()
	key := objectKey{"Pod", name}
	if err := l.api.mergeStrategically(key, patch); err != nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name[strings.Index(name, "/")+1:])
	}
	stored, err := l.api.get(key)
	if err != nil {
		return err
	}
	pod := stored.(*v1.Pod)
	var sent struct {
		Status struct {
			Conditions        []v1.PodCondition `json:"conditions"`
			NominatedNodeName json.RawMessage   `json:"nominatedNodeName"`
		} `json:"status"`
	}
	if err := json.Unmarshal(patch, &sent); err != nil {
		return err
	}
	entry := patchEntry{Pod: name}
	for _, changed := range sent.Status.Conditions {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == changed.Type {
				entry.Type, entry.Status = string(condition.Type), string(condition.Status)
				entry.Reason, entry.Message = condition.Reason, condition.Message
			}
		}
	}
	if sent.Status.NominatedNodeName != nil {
		entry.NominatedNodeName = &pod.Status.NominatedNodeName
	}
	l.step.Patches = append(l.step.Patches, entry)
	return nil
}

// evict is the DELETE of a victim.
func (l *queueLife) evict(name string) error {
	defer l.preemptionWrites()()
	if take(l.deleteFailures, name) != 0 {
		l.evictionFailed = true
		l.step.Evicted = append(l.step.Evicted, name+" FAILED")
		return apierrors.NewInternalError(errors.New("injected error"))
	}
	key := objectKey{"Pod", name}
	stored, err := l.api.get(key)
	if err != nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name[strings.Index(name, "/")+1:])
	}
	l.step.Evicted = append(l.step.Evicted, name)
	if l.Graceful && stored.(*v1.Pod).Spec.NodeName != "" {
		return l.terminate(name)
	}
	return l.api.remove(key)
}

func (l *queueLife) terminate(name string) error {
	stamp := metav1.NewTime(recordingStart)
	return l.api.change(objectKey{"Pod", name}, func(obj apiruntime.Object) {
		obj.(*v1.Pod).DeletionTimestamp = &stamp
	})
}

// preemptionWrites holds a write of a preemption's own goroutine back until evictions may begin. What it gives is to be
// called after the write.
func (l *queueLife) preemptionWrites() func() {
	if !calledFrom("prepareCandidateAsync") {
		return func() {}
	}
	l.held.Store(true)
	<-l.evictions
	return func() {
		if l.EvictionDelivery == "immediate" {
			l.api.deliver()
		}
	}
}

func calledFrom(function string) bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// settle is what the controllers of volumes do, at once, when the scheduler has written about storage.
func (l *queueLife) settle(key objectKey) {
	defer l.api.deliver()
	stored, err := l.api.get(key)
	if err != nil {
		return
	}
	switch obj := stored.(type) {
	case *v1.PersistentVolume:
		if obj.Spec.ClaimRef != nil {
			l.bindVolume(obj.Name, qualified(obj.Spec.ClaimRef.Namespace, obj.Spec.ClaimRef.Name))
		}
	case *v1.PersistentVolumeClaim:
		l.provision(obj)
	}
}

func (l *queueLife) provision(claim *v1.PersistentVolumeClaim) {
	reference := &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + claim.Name}}
	volume.Spec.ClaimRef, volume.Spec.AccessModes = reference, claim.Spec.AccessModes
	volume.Spec.Capacity = claim.Spec.Resources.Requests
	if claim.Spec.StorageClassName != nil {
		volume.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	if err := l.api.create(objectKey{"PersistentVolume", volume.Name}, volume); err != nil {
		panic(err)
	}
	l.bindVolume(volume.Name, nameOf(claim))
}

func (l *queueLife) bindVolume(volume, claim string) {
	bound := l.api.change(objectKey{"PersistentVolume", volume}, func(obj apiruntime.Object) {
		obj.(*v1.PersistentVolume).Status.Phase = v1.VolumeBound
	})
	completed := l.api.change(objectKey{"PersistentVolumeClaim", claim}, func(obj apiruntime.Object) {
		pvc := obj.(*v1.PersistentVolumeClaim)
		metav1.SetMetaDataAnnotation(&pvc.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
		pvc.Spec.VolumeName, pvc.Status.Phase = volume, v1.ClaimBound
	})
	if err := errors.Join(bound, completed); err != nil {
		panic(err)
	}
}

func setCondition(pod *v1.Pod, condition v1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == condition.Type {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

func take(armed map[string][]int, pod string) int {
	codes := armed[pod]
	if len(codes) == 0 {
		return 0
	}
	armed[pod] = codes[1:]
	return codes[0]
}

// Eventf notes an Event.
func (l *queueLife) Eventf(regarding, _ apiruntime.Object, eventType, reason, action, note string, arguments ...any) {
	entry := eventEntry{nameOf(regarding), eventType, reason, action, fmt.Sprintf(note, arguments...)}
	l.step.Events = append(l.step.Events, entry)
}

// WithLogger is part of being a recorder of Events.
func (l *queueLife) WithLogger(klog.Logger) events.EventRecorderLogger { return l }
