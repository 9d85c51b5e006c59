// Built inside a Kubernetes source tree of v1.36: where its queue keeps pods.
package queue

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PopPod must not be called when Pop would wait.
func (p *PriorityQueue) PopPod(logger klog.Logger) (*framework.QueuedPodInfo, error) { return p.Pop(logger) }

// FlushLeftovers is what happens every thirty seconds.
func (p *PriorityQueue) FlushLeftovers(logger klog.Logger) { p.flushUnschedulablePodsLeftover(logger) }

func (p *PriorityQueue) activePods() []*framework.QueuedPodInfo {
	return p.activeQ.(*activeQueue).queue.List()
}

func (b *backoffQueue) backoffPods() []*framework.QueuedPodInfo { return b.podBackoffQ.List() }

func (b *backoffQueue) errorBackoffPods() []*framework.QueuedPodInfo { return b.podErrorBackoffQ.List() }

func (p *PriorityQueue) waitingPods() []*framework.QueuedPodInfo {
	var found []*framework.QueuedPodInfo
	for _, queued := range p.unschedulablePods.podInfoMap {
		found = append(found, queued)
	}
	return found
}

func (p *PriorityQueue) waitingPod(pod *v1.Pod) *framework.QueuedPodInfo {
	return p.unschedulablePods.get(pod)
}

func eventsOfUpdate(old, new *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(new, old)
}
