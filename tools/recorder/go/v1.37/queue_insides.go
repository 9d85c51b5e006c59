// Built inside a Kubernetes source tree of v1.37: what its queue calls things.
package scheduler

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// tellsOfMove says whether a line of the log does, and which of its fields names the pod.
func tellsOfMove(text string) (string, bool) {
	const move = "moved to an internal scheduling queue"
	switch text {
	case "Entity " + move, "Entity " + move + ", because it is gated":
		return "entity", true
	case "Pod " + move:
		return "pod", true
	}
	return "", false
}

// AddUnschedulablePodIfNotPresent is how a pod comes back after an attempt.
func (q recordedQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, queued *framework.QueuedPodInfo, cycle int64) error {
	q.noteReplayed(queued)
	return q.PriorityQueue.AddUnschedulablePodIfNotPresent(logger, queued, cycle)
}
