// Built inside a Kubernetes source tree: one decision, taken apart: filters, scores, and the real SchedulePod beside them.
package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

type podResult struct {
	Pod                  string                      `json:"pod"`
	Profile              string                      `json:"profile,omitempty"`
	Outcome              string                      `json:"outcome"`
	Skipped              string                      `json:"skipped,omitempty"`
	PreEnqueue           *statusResult               `json:"preEnqueue,omitempty"`
	PreFilter            *preFilterResult            `json:"preFilter,omitempty"`
	Filter               map[string]*statusResult    `json:"filter,omitempty"`
	FilterAll            map[string]map[string]any   `json:"filterAll,omitempty"`
	Feasible             []string                    `json:"feasible,omitempty"`
	SkipScore            []string                    `json:"skipScore,omitempty"`
	Raw                  map[string]map[string]int64 `json:"raw,omitempty"`
	Scores               map[string]map[string]int64 `json:"scores,omitempty"`
	Total                map[string]int64            `json:"total,omitempty"`
	Best                 []string                    `json:"best,omitempty"`
	ScoreError           string                      `json:"scoreError,omitempty"`
	Chosen               string                      `json:"chosen,omitempty"`
	Schedule             *scheduleResult             `json:"schedule,omitempty"`
	FitError             string                      `json:"fitError,omitempty"`
	Message              string                      `json:"message,omitempty"`
	UnschedulablePlugins []string                    `json:"unschedulablePlugins,omitempty"`
	PostFilter           *postFilterResult           `json:"postFilter,omitempty"`
	Preemption           *preemptionResult           `json:"preemption,omitempty"`
	Reserve              *statusResult               `json:"reserve,omitempty"`
	NodeAllocations      map[string]map[string]any   `json:"nodeAllocations,omitempty"`
	Allocations          map[string][]map[string]any `json:"allocations,omitempty"`
	Deallocatable        []string                    `json:"deallocatable,omitempty"`
	ClaimWrites          []string                    `json:"claimWrites,omitempty"`
	InUse                map[string]any              `json:"inUse,omitempty"`
	Verify               string                      `json:"verify"`
}

type statusResult struct {
	Plugin  string   `json:"plugin,omitempty"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

type preFilterResult struct {
	statusResult
	Skip  []string `json:"skip"`
	Nodes []string `json:"nodes,omitempty"`
}

type scheduleResult struct {
	Host           string `json:"host,omitempty"`
	EvaluatedNodes int    `json:"evaluatedNodes,omitempty"`
	FeasibleNodes  int    `json:"feasibleNodes,omitempty"`
	Error          string `json:"error,omitempty"`
}

// podAttempt is one pod with the notes that plugins took about it.
type podAttempt struct {
	*decisions
	pod     *v1.Pod
	profile framework.Framework
	state   fwk.CycleState
	result  *podResult
}

// attempt decides about one pod and, in the modes in which pods see each other, carries the decision out.
func (d *decisions) attempt(name string) *podResult {
	pod := d.pod(name)
	result := &podResult{Pod: name}
	if result.Skipped = d.whySkipped(name, pod); result.Skipped != "" {
		result.Outcome = "skipped"
		return result
	}
	profile := d.scheduler.Profiles[pod.Spec.SchedulerName]
	result.Profile = profile.ProfileName()
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(d.ctx, pod); !status.IsSuccess() {
			status.SetPlugin(plugin.Name())
			result.Outcome, result.PreEnqueue = "gated", described(status)
			return result
		}
	}
	if pod.DeletionTimestamp != nil {
		result.Outcome, result.Skipped = "skipped", "pod is being deleted"
		return result
	}
	attempt := &podAttempt{d, pod, profile, nil, result}
	attempt.decide()
	if d.Mode != "evaluate" {
		d.carryOut(result, attempt)
	}
	return result
}

func (a *podAttempt) decide() {
	sched := a.scheduler
	if err := sched.Cache.UpdateSnapshot(sched.logger, sched.nodeInfoSnapshot); err != nil {
		panic(err)
	}
	if feasible := a.filter(); len(feasible) > 0 {
		a.score(feasible)
		a.nodeAllocations(feasible)
	}
	a.schedule()
}

// filter asks about every node, and every plugin on its own about the nodes that do not fit.
func (a *podAttempt) filter() []fwk.NodeInfo {
	result := a.result
	a.state = framework.NewCycleState()
	narrowed, status, _ := a.profile.RunPreFilterPlugins(a.ctx, a.state, a.pod)
	result.PreFilter = &preFilterResult{statusResult: *described(status), Skip: sets.List(a.state.GetSkipFilterPlugins())}
	nodes := a.nodes()
	if !narrowed.AllNodes() {
		result.PreFilter.Nodes = sets.List(narrowed.NodeNames)
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(node fwk.NodeInfo) bool {
			return !narrowed.NodeNames.Has(node.Node().Name)
		})
	}
	if !status.IsSuccess() {
		result.PreFilter.Nodes = nil
		return nil
	}
	result.Filter = map[string]*statusResult{}
	alone := framework.NewCycleState()
	a.profile.RunPreFilterPlugins(a.ctx, alone, a.pod)
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		name := node.Node().Name
		status := a.profile.RunFilterPluginsWithNominatedPods(a.ctx, a.state, a.pod, node)
		if status.IsSuccess() {
			result.Filter[name] = nil
			result.Feasible = append(result.Feasible, name)
			feasible = append(feasible, node)
			continue
		}
		result.Filter[name] = described(status)
		if others := a.filterAlone(alone, node, result.Filter[name]); len(others) > 0 {
			if result.FilterAll == nil {
				result.FilterAll = map[string]map[string]any{}
			}
			result.FilterAll[name] = others
		}
	}
	sort.Strings(result.Feasible)
	return feasible
}

// filterAlone is what plugins say about a node without regard to each other and to nominated pods.
func (a *podAttempt) filterAlone(state fwk.CycleState, node fwk.NodeInfo, said *statusResult) map[string]any {
	found := map[string]any{}
	for _, plugin := range frameworkruntime.FilterPluginsOf(a.profile) {
		if state.GetSkipFilterPlugins().Has(plugin.Name()) {
			continue
		}
		status := plugin.Filter(a.ctx, state, a.pod, node)
		if status.IsSuccess() {
			continue
		}
		status.SetPlugin(plugin.Name())
		answer := described(status)
		if answer.Plugin == said.Plugin && answer.Code == said.Code && slices.Equal(answer.Reasons, said.Reasons) {
			continue
		}
		answer.Plugin = ""
		found[plugin.Name()] = answer
	}
	return found
}

// score asks about all nodes that fit, also about a single one.
func (a *podAttempt) score(nodes []fwk.NodeInfo) {
	result := a.result
	result.Best = result.Feasible
	if !a.profile.HasScorePlugins() {
		return
	}
	if status := a.profile.RunPreScorePlugins(a.ctx, a.state, a.pod, nodes); !status.IsSuccess() {
		result.ScoreError = "PreScore: " + status.AsError().Error()
		return
	}
	result.SkipScore = sets.List(a.state.GetSkipScorePlugins())
	result.Raw = map[string]map[string]int64{}
	for _, plugin := range frameworkruntime.ScorePluginsOf(a.profile) {
		if a.state.GetSkipScorePlugins().Has(plugin.Name()) {
			continue
		}
		scores := map[string]int64{}
		for _, node := range nodes {
			score, status := plugin.Score(a.ctx, a.state, a.pod, node)
			if !status.IsSuccess() {
				result.ScoreError = "Score: " + status.AsError().Error()
				return
			}
			scores[node.Node().Name] = score
		}
		result.Raw[plugin.Name()] = scores
	}
	scored, status := a.profile.RunScorePlugins(a.ctx, a.state, a.pod, nodes)
	if !status.IsSuccess() {
		result.ScoreError = "Score: " + status.AsError().Error()
		return
	}
	result.Scores, result.Total = map[string]map[string]int64{}, map[string]int64{}
	for _, node := range scored {
		result.Total[node.Name] = node.TotalScore
		for _, part := range node.Scores {
			if a.state.GetSkipScorePlugins().Has(part.Name) {
				continue
			}
			if result.Scores[part.Name] == nil {
				result.Scores[part.Name] = map[string]int64{}
			}
			result.Scores[part.Name][node.Name] = part.Score
		}
	}
	result.Best = nil
	for _, name := range result.Feasible {
		if len(result.Best) > 0 && result.Total[name] > result.Total[result.Best[0]] {
			result.Best = nil
		}
		if len(result.Best) == 0 || result.Total[name] == result.Total[result.Best[0]] {
			result.Best = append(result.Best, name)
		}
	}
}

// schedule is the real thing; what was found out before must lead to the same place.
func (a *podAttempt) schedule() {
	result := a.result
	state := framework.NewCycleState()
	found, err := a.scheduler.SchedulePod(a.ctx, a.profile, state, newQueued(a.pod))
	result.Verify = "ok"
	result.Schedule = &scheduleResult{EvaluatedNodes: found.EvaluatedNodes, FeasibleNodes: found.FeasibleNodes}
	var misfit *framework.FitError
	switch {
	case err == nil:
		a.state = state
		result.Outcome = "scheduled"
		a.choose(found)
	case errors.As(err, &misfit):
		result.Outcome = "unschedulable"
		a.explain(state, misfit)
		if len(result.Feasible) > 0 {
			result.Verify = fmt.Sprintf("SchedulePod says %q, but these fit: %v", misfit, result.Feasible)
		}
	case errors.Is(err, ErrNoNodesAvailable):
		result.Outcome = "unschedulable"
		result.Schedule.Error = err.Error()
	default:
		result.Outcome = "error"
		result.Schedule.Error = err.Error()
		result.Best = nil
	}
}

func (a *podAttempt) choose(found ScheduleResult) {
	result := a.result
	nominated := a.pod.Status.NominatedNodeName
	switch {
	case nominated != "" && found.SuggestedHost == nominated && found.FeasibleNodes == 1:
		result.Chosen, result.Schedule.Host = nominated, nominated
	case !slices.Contains(result.Best, found.SuggestedHost):
		result.Chosen = found.SuggestedHost
		result.Verify = fmt.Sprintf("SchedulePod chose %s, not one of %v", found.SuggestedHost, result.Best)
	default:
		result.Chosen = result.Best[0]
		if len(result.Best) == 1 {
			result.Schedule.Host = found.SuggestedHost
		}
	}
	result.Allocations = a.allocationsOn(result.Chosen)
}

// described puts a status as it is recorded.
func described(status *fwk.Status) *statusResult {
	if status == nil {
		return &statusResult{Code: fwk.Success.String()}
	}
	reasons := slices.Clone(status.Reasons())
	if status.Plugin() == names.NodeResourcesFit {
		sortScalars(reasons)
	}
	return &statusResult{status.Plugin(), status.Code().String(), reasons}
}

// sortScalars puts what NodeResourcesFit says about other than the basic resources in order: it comes in that of a map.
func sortScalars(reasons []string) {
	basic := []string{"Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"}
	first := 0
	for first < len(reasons) && slices.Contains(basic, reasons[first]) {
		first++
	}
	sort.Strings(reasons[first:])
}
