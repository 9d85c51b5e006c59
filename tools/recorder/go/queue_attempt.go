// Built inside a Kubernetes source tree: attempts at pods, which a recording may stop after the pop or after the decision.
package scheduler

import (
	"context"
	"slices"
	"sort"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// openAttempt is an attempt that has begun and not ended.
type openAttempt struct {
	queued, assumed *framework.QueuedPodInfo
	profile         framework.Framework
	state           fwk.CycleState
	result          ScheduleResult
	status          *fwk.Status
	stage           string
	started         time.Time
	toActivate      *framework.PodsToActivate

	reached, release, ended chan struct{}
}

func (l *queueLife) begin(until string) {
	for _, attempt := range l.open {
		if attempt.stage != "assumed" {
			l.step.Outcome = "busy"
			return
		}
	}
	from := l.queue.NextFrom()
	if from == "" {
		l.step.Outcome = "nothing to pop"
		return
	}
	queued, err := l.queue.PopPod(l.logger)
	if err != nil {
		panic(err)
	}
	l.step.Popped, l.step.From = nameOf(queued.Pod), from
	attempt := &openAttempt{queued: queued, stage: "popped", started: l.clock.Now()}
	if until == "" || until == "pop" {
		l.step.Outcome = "popped"
		l.open = append(l.open, attempt)
		return
	}
	l.decide(attempt)
	if until == "decision" && attempt.stage == "assumed" {
		l.bindUntilCall(attempt)
	}
	if until == "decision" && attempt.stage != "done" {
		l.step.Outcome = attempt.stage
		if attempt.stage == "failed" {
			l.step.Code = attempt.status.Code().String()
		} else {
			l.step.Host = attempt.result.SuggestedHost
		}
		l.open = append(l.open, attempt)
		return
	}
	l.finish(attempt)
}

func (l *queueLife) endAttempt(pod string) {
	index := slices.IndexFunc(l.open, func(attempt *openAttempt) bool {
		return pod == "" || nameOf(attempt.queued.Pod) == pod
	})
	if index < 0 {
		l.step.Outcome = "no open attempt"
		return
	}
	attempt := l.open[index]
	l.open = slices.Delete(l.open, index, index+1)
	l.step.Popped = nameOf(attempt.queued.Pod)
	if attempt.stage == "popped" {
		l.decide(attempt)
	}
	l.finish(attempt)
}

// decide is the scheduling cycle: what scheduleOnePod does before it hands over to the failure handler or to binding.
func (l *queueLife) decide(attempt *openAttempt) {
	sched, pod := l.scheduler, attempt.queued.Pod
	profile, err := sched.frameworkForPod(pod)
	if err != nil {
		panic(err)
	}
	attempt.profile = profile
	if sched.skipPodSchedule(l.ctx, profile, pod) {
		sched.SchedulingQueue.Done(pod.UID)
		attempt.stage, l.step.Outcome = "done", "skipped"
		return
	}
	attempt.state, attempt.toActivate = framework.NewCycleState(), framework.NewPodsToActivate()
	attempt.state.Write(framework.PodsToActivateKey, attempt.toActivate)
	l.evictions, l.evictionFailed, l.activated = make(chan struct{}), false, make(chan struct{})
	l.held.Store(false)
	attempt.result, attempt.assumed, attempt.status = sched.schedulingCycle(
		l.ctx, attempt.state, profile, attempt.queued, attempt.started, attempt.toActivate)
	attempt.stage = "assumed"
	if !attempt.status.IsSuccess() {
		attempt.stage = "failed"
	}
	// A preemption has begun before anything else happens; its first write is held back.
	for plugin := preemptionOf(profile); plugin != nil && !plugin.Executor.Idle() && !l.held.Load(); {
		time.Sleep(20 * time.Microsecond)
	}
}

// finish is the failure handler with the evictions after it, or the binding cycle.
func (l *queueLife) finish(attempt *openAttempt) {
	switch attempt.stage {
	case "failed":
		l.step.Outcome, l.step.Code = "error", attempt.status.Code().String()
		if attempt.status.IsRejected() {
			l.step.Outcome = "unschedulable"
		}
		l.scheduler.FailureHandler(l.ctx, attempt.profile, attempt.assumed, attempt.status, attempt.result.nominatingInfo, attempt.started)
		l.evictionsEnd(attempt)
	case "assumed":
		if attempt.release == nil {
			l.bindNow(attempt)
		} else {
			close(attempt.release)
			<-attempt.ended
		}
		l.describeBinding(attempt)
	}
	attempt.stage = "done"
}

// evictionsEnd lets the evictions of a preemption begin and waits for their end.
func (l *queueLife) evictionsEnd(attempt *openAttempt) {
	activated := l.activated
	close(l.evictions)
	plugin := preemptionOf(attempt.profile)
	for plugin != nil && !plugin.Executor.Idle() {
		time.Sleep(20 * time.Microsecond)
	}
	if l.evictionFailed {
		<-activated // the goroutine's last act
	}
}

// bindUntilCall runs the binding cycle up to the call of the API server.
func (l *queueLife) bindUntilCall(attempt *openAttempt) {
	reached := make(chan struct{})
	attempt.reached, attempt.release, attempt.ended = reached, make(chan struct{}), make(chan struct{})
	l.binding = attempt
	go func() {
		defer close(attempt.ended)
		l.bindNow(attempt)
	}()
	select {
	case <-reached:
	case <-attempt.ended:
		l.describeBinding(attempt)
		attempt.stage = "done"
	}
	l.binding = nil
}

// bindNow is the binding cycle, with what becomes of its failure.
func (l *queueLife) bindNow(attempt *openAttempt) {
	sched := l.scheduler
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	attempt.status = sched.bindingCycle(ctx, attempt.state, attempt.profile, attempt.result, attempt.assumed, attempt.started, attempt.toActivate)
	if !attempt.status.IsSuccess() {
		sched.handleBindingCycleError(ctx, attempt.state, attempt.profile, attempt.assumed, attempt.started, attempt.result, attempt.status)
	}
}

func (l *queueLife) describeBinding(attempt *openAttempt) {
	l.step.Host = attempt.result.SuggestedHost
	switch {
	case attempt.status.IsSuccess():
		l.step.Outcome = "bound"
		return
	case attempt.status.IsRejected():
		l.step.Outcome = "bind-unschedulable"
	default:
		l.step.Outcome = "bind-error"
	}
	l.step.Code = attempt.status.Code().String()
}

func preemptionOf(profile framework.Framework) *defaultpreemption.DefaultPreemption {
	plugin, _ := frameworkruntime.PluginOf(profile, names.DefaultPreemption).(*defaultpreemption.DefaultPreemption)
	return plugin
}

// settleTies has the scheduler take the smallest name where it would take any among equals.
func (l *queueLife) settleTies() {
	sched := l.scheduler
	sched.SchedulePod = func(ctx context.Context, profile framework.Framework, state fwk.CycleState, queued *framework.QueuedPodInfo) (ScheduleResult, error) {
		result, err := sched.schedulePod(ctx, profile, state, queued)
		if err == nil && result.FeasibleNodes > 1 {
			again := &podAttempt{&decisions{world: l.world}, queued.Pod, profile, nil, &podResult{}}
			again.score(again.filter())
			result.SuggestedHost = again.result.Best[0]
		}
		return result, err
	}
	for _, profile := range sched.Profiles {
		if plugin := preemptionOf(profile); plugin != nil {
			plugin.Evaluator.Interface = firstAmongEquals{plugin.Evaluator.Interface}
		}
		profile.SetPodActivator(recordedQueue{l.queue, l})
	}
}

// firstAmongEquals is DefaultPreemption; of candidates that cost the same it takes the node with the smallest name.
type firstAmongEquals struct{ preemption.Interface }

func (firstAmongEquals) OrderedScoreFuncs(_ context.Context, candidates map[string]*extenderv1.Victims) []func(string) int64 {
	var functions []func(string) int64
	for part := range costParts {
		functions = append(functions, func(node string) int64 { return -costOf(candidates[node])[part] })
	}
	var byName []string
	for node := range candidates {
		byName = append(byName, node)
	}
	sort.Strings(byName)
	return append(functions, func(node string) int64 { return -int64(slices.Index(byName, node)) })
}
