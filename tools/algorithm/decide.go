// Built inside a Kubernetes source tree, as a file of its package scheduler: one decision, as in a scheduling cycle.
package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// DecideAndAssume looks at the cluster anew, chooses a node for the pod, and takes the pod to be there.
func (sched *Scheduler) DecideAndAssume(ctx context.Context, pod *v1.Pod) (string, error) {
	logger := klog.FromContext(ctx)
	if err := sched.Cache.UpdateSnapshot(logger, sched.nodeInfoSnapshot); err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", err
	}
	profile := sched.Profiles[v1.DefaultSchedulerName]
	result, err := sched.SchedulePod(ctx, profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		return "", err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	return result.SuggestedHost, sched.Cache.AssumePod(logger, assumed)
}
