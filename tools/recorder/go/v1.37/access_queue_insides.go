// Built inside a Kubernetes source tree of v1.37: its queue keeps entities, pods or groups of them; recordings have no groups.
package queue

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PopPod must not be called when Pop would wait.
func (p *PriorityQueue) PopPod(logger klog.Logger) (*framework.QueuedPodInfo, error) {
	popped, err := p.Pop(logger)
	if err != nil {
		return nil, err
	}
	return popped.(*framework.QueuedPodInfo), nil
}

// FlushLeftovers is what happens every thirty seconds.
func (p *PriorityQueue) FlushLeftovers(logger klog.Logger) {
	p.flushUnschedulableEntitiesLeftover(logger)
}

func (p *PriorityQueue) activePods() []*framework.QueuedPodInfo {
	return podsOf(p.activeQ.(*activeQueue).queue.List())
}

func (b *backoffQueue) backoffPods() []*framework.QueuedPodInfo {
	return podsOf(b.entityBackoffQ.List())
}

func (b *backoffQueue) errorBackoffPods() []*framework.QueuedPodInfo {
	return podsOf(b.entityErrorBackoffQ.List())
}

func (p *PriorityQueue) waitingPods() []*framework.QueuedPodInfo {
	var found []framework.QueuedEntityInfo
	for _, queued := range p.unschedulableEntities.entityInfoMap {
		found = append(found, queued)
	}
	return podsOf(found)
}

func (p *PriorityQueue) waitingPod(pod *v1.Pod) *framework.QueuedPodInfo {
	queued, _ := p.unschedulableEntities.get(newQueuedPodInfoForLookup(pod)).(*framework.QueuedPodInfo)
	return queued
}

func eventsOfUpdate(old, new *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(new, old, true)
}

func podsOf(entities []framework.QueuedEntityInfo) []*framework.QueuedPodInfo {
	var found []*framework.QueuedPodInfo
	for _, entity := range entities {
		found = append(found, entity.(*framework.QueuedPodInfo))
	}
	return found
}
