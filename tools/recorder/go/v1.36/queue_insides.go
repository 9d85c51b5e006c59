// Built inside a Kubernetes source tree of v1.36: what its queue calls things.
package scheduler

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// tellsOfMove says whether a line of the log does, and which of its fields names the pod.
func tellsOfMove(text string) (string, bool) {
	const move = "Pod moved to an internal scheduling queue"
	return "pod", text == move || text == move+", because the pod is gated"
}

// AddUnschedulableIfNotPresent is how a pod comes back after an attempt.
func (q recordedQueue) AddUnschedulableIfNotPresent(logger klog.Logger, queued *framework.QueuedPodInfo, cycle int64) error {
	q.noteReplayed(queued)
	return q.PriorityQueue.AddUnschedulableIfNotPresent(logger, queued, cycle)
}
