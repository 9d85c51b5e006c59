// Built inside a Kubernetes source tree: what is where in the scheduling queue, its timers, and its hints asked one by one.
package queue

import (
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Contents are the pods of a queue, each place in its own order.
type Contents struct {
	Active, Backoff, ErrorBackoff, Unschedulable []*framework.QueuedPodInfo
	InFlightEvents                               []string
	Nominated                                    map[string][]string
}

// RecordedHint is the answer of one plugin about one pod.
type RecordedHint struct {
	Pod    string `json:"pod"`
	Plugin string `json:"plugin"`
	Event  string `json:"event"`
	Hint   string `json:"hint"`
}

// Contents looks into every part of the queue. Nothing else may use the queue meanwhile.
func (p *PriorityQueue) Contents() Contents {
	backoff := p.backoffQ.(*backoffQueue)
	found := Contents{
		Active:        p.activePods(),
		Backoff:       backoff.backoffPods(),
		ErrorBackoff:  backoff.errorBackoffPods(),
		Unschedulable: p.waitingPods(),
		Nominated:     map[string][]string{},
	}
	sort.Slice(found.Active, func(i, j int) bool { return backoff.activeQLessFn(found.Active[i], found.Active[j]) })
	sort.Slice(found.Backoff, func(i, j int) bool {
		return backoff.lessBackoffCompletedWithPriority(found.Backoff[i], found.Backoff[j])
	})
	sort.Slice(found.ErrorBackoff, func(i, j int) bool {
		left, right := found.ErrorBackoff[i], found.ErrorBackoff[j]
		if earlier, later := p.BackoffUntil(left), p.BackoffUntil(right); !earlier.Equal(later) {
			return earlier.Before(later)
		}
		return podName(left.Pod) < podName(right.Pod)
	})
	sort.Slice(found.Unschedulable, func(i, j int) bool {
		return podName(found.Unschedulable[i].Pod) < podName(found.Unschedulable[j].Pod)
	})
	for _, entry := range p.activeQ.listInFlightEvents() {
		switch entry := entry.(type) {
		case *v1.Pod:
			found.InFlightEvents = append(found.InFlightEvents, "pod:"+podName(entry))
		case *clusterEvent:
			found.InFlightEvents = append(found.InFlightEvents, entry.event.Label())
		}
	}
	for node, pods := range p.nominatedPods {
		for _, pod := range pods {
			if node != "" {
				found.Nominated[node] = append(found.Nominated[node], pod.namespace+"/"+pod.name)
			}
		}
	}
	return found
}

// BackoffUntil is when the pod may be tried again.
func (p *PriorityQueue) BackoffUntil(queued *framework.QueuedPodInfo) time.Time {
	return p.backoffQ.(*backoffQueue).getBackoffTime(queued)
}

// NominatedTo is the node that a pod is nominated to in memory.
func (p *PriorityQueue) NominatedTo(uid types.UID) string { return p.nominatedPodToNode[uid] }

// IsInFlight says whether Done has not been called yet.
func (p *PriorityQueue) IsInFlight(uid types.UID) bool {
	_, found := p.activeQ.(*activeQueue).inFlightPods[uid]
	return found
}

// NextFrom says where the next pod will come from, "" if Pop would wait.
func (p *PriorityQueue) NextFrom() string {
	switch {
	case p.activeQ.len() > 0:
		return "active"
	case p.isPopFromBackoffQEnabled && p.backoffQ.(*backoffQueue).lenBackoff() > 0:
		return "backoff"
	}
	return ""
}

// FlushBackoff is what happens every second.
func (p *PriorityQueue) FlushBackoff(logger klog.Logger) { p.flushBackoffQCompleted(logger) }

// HintsOfEvent asks all plugins that rejected a waiting pod, where the queue stops at the first that says Queue.
func (p *PriorityQueue) HintsOfEvent(logger klog.Logger, event fwk.ClusterEvent, old, new any, check PreEnqueueCheck) []RecordedHint {
	var found []RecordedHint
	for _, queued := range p.Contents().Unschedulable {
		ofNoInterest := queued.Gated() && !framework.MatchAnyClusterEvent(event, queued.GatingPluginEvents)
		if ofNoInterest || check != nil && !check(queued.Pod) {
			continue
		}
		found = append(found, p.hintsOf(logger, queued, queued.Pod, event, old, new)...)
	}
	return found
}

// HintsOfUpdate asks about a pod's own update, if the pod is unschedulable.
func (p *PriorityQueue) HintsOfUpdate(logger klog.Logger, old, new *v1.Pod) []RecordedHint {
	queued := p.waitingPod(new)
	if queued == nil {
		return nil
	}
	var found []RecordedHint
	for _, event := range eventsOfUpdate(old, new) {
		found = append(found, p.hintsOf(logger, queued, new, event, old, new)...)
	}
	return found
}

// Replayed asks about the events that happened while the pod was in flight, and has their labels.
func (p *PriorityQueue) Replayed(logger klog.Logger, queued *framework.QueuedPodInfo) ([]string, []RecordedHint) {
	if len(queued.UnschedulablePlugins) == 0 && len(queued.PendingPlugins) == 0 {
		return nil, nil
	}
	events, err := p.activeQ.clusterEventsForPod(logger, queued)
	if err != nil {
		return nil, nil
	}
	var labels []string
	var found []RecordedHint
	for _, event := range events {
		labels = append(labels, event.event.Label())
		found = append(found, p.hintsOf(logger, queued, queued.Pod, event.event, event.oldObj, event.newObj)...)
	}
	return labels, found
}

func (p *PriorityQueue) hintsOf(logger klog.Logger, queued *framework.QueuedPodInfo, pod *v1.Pod, event fwk.ClusterEvent, old, new any) []RecordedHint {
	if framework.ClusterEventIsWildCard(event) {
		return nil
	}
	rejectors := queued.UnschedulablePlugins.Union(queued.PendingPlugins)
	var found []RecordedHint
	for registered, functions := range p.queueingHintMap[pod.Spec.SchedulerName] {
		if !framework.MatchClusterEvents(registered, event) {
			continue
		}
		for _, function := range functions {
			if !rejectors.Has(function.PluginName) {
				continue
			}
			hint, err := function.QueueingHintFn(logger, pod, old, new)
			answer := hint.String()
			if err != nil {
				answer = "Error"
			}
			found = append(found, RecordedHint{podName(pod), function.PluginName, event.Label(), answer})
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Plugin < found[j].Plugin })
	return found
}

func podName(pod *v1.Pod) string { return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name) }
