// Built inside a Kubernetes source tree: why no node fits, and what making room would cost.
package scheduler

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

type postFilterResult struct {
	Plugin     string   `json:"plugin,omitempty"`
	Code       string   `json:"code"`
	Reasons    []string `json:"reasons,omitempty"`
	Message    string   `json:"message,omitempty"`
	Nominating *string  `json:"nominating,omitempty"`
	Victims    []string `json:"victims,omitempty"`
}

type preemptionResult struct {
	Eligible   bool                       `json:"eligible"`
	Reason     string                     `json:"reason,omitempty"`
	Potential  []string                   `json:"potential,omitempty"`
	Candidates map[string]candidateResult `json:"candidates,omitempty"`
	Statuses   map[string]*statusResult   `json:"statuses,omitempty"`
	Best       []string                   `json:"best,omitempty"`
	Chosen     string                     `json:"chosen,omitempty"`
	Victims    []string                   `json:"victims,omitempty"`
}

type candidateResult struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations,omitempty"`
}

// explain has the messages and the PostFilter plugins' answer, with the notes of the real attempt.
func (a *podAttempt) explain(state fwk.CycleState, misfit *framework.FitError) {
	result := a.result
	result.FitError = misfit.Error()
	result.UnschedulablePlugins = sets.List(misfit.Diagnosis.UnschedulablePlugins)
	for _, claim := range dynamicresources.Deallocatable(state, a.pod) {
		result.Deallocatable = append(result.Deallocatable, claim.Name)
	}
	sort.Strings(result.Deallocatable)
	plugin, _ := frameworkruntime.PluginOf(a.profile, names.DefaultPreemption).(*defaultpreemption.DefaultPreemption)
	if !a.profile.HasPostFilterPlugins() {
		result.Message = misfit.Error()
		return
	}
	statuses := misfit.Diagnosis.NodeToStatus
	preempts := false
	for _, enabled := range a.profile.ListPlugins().PostFilter.Enabled {
		preempts = preempts || enabled.Name == names.DefaultPreemption
	}
	if preempts {
		result.Preemption = a.preemption(plugin, state, statuses)
	}
	a.takeClaimWrites()
	found, status := a.profile.RunPostFilterPlugins(a.ctx, state, a.pod, statuses)
	for plugin != nil && !plugin.Executor.Idle() {
		runtime.Gosched()
	}
	if len(result.Deallocatable) <= 1 {
		result.ClaimWrites = a.takeClaimWrites()
	}
	misfit.Diagnosis.PostFilterMsg = status.Message()
	result.Message = misfit.Error()
	result.PostFilter = &postFilterResult{Code: status.Code().String()}
	if !status.IsSuccess() {
		result.PostFilter.Plugin, result.PostFilter.Reasons = status.Plugin(), status.Reasons()
		result.PostFilter.Message = status.Message()
	}
	if found != nil && found.NominatingInfo != nil && found.NominatingInfo.Mode() == fwk.ModeOverride {
		node := found.NominatingInfo.NominatedNodeName
		a.settleTie(node)
	}
}

// settleTie puts the first among equals in the place of the one that the real plugin took at random.
func (a *podAttempt) settleTie(node string) {
	result, dryRun := a.result, a.result.Preemption
	if node != "" && dryRun != nil {
		if !slices.Contains(dryRun.Best, node) && len(dryRun.Potential) <= alwaysDryRun {
			result.Verify = fmt.Sprintf("PostFilter nominated %s, not one of %v", node, dryRun.Best)
		} else if node != dryRun.Chosen {
			// Since v1.37 the message says which one it was.
			found := "found a potential placement for pod on node %s, preempting %d victims"
			real := fmt.Sprintf(found, node, len(dryRun.Candidates[node].Victims))
			settled := fmt.Sprintf(found, dryRun.Chosen, len(dryRun.Candidates[dryRun.Chosen].Victims))
			result.Message = strings.Replace(result.Message, real, settled, 1)
			node = dryRun.Chosen
		}
		result.PostFilter.Victims = dryRun.Candidates[node].Victims
	}
	result.PostFilter.Nominating = &node
}

// alwaysDryRun is how many nodes the real plugin looks at at least; of more it may take a sample.
const alwaysDryRun = 100

// preemption is the real dry run on every potential node.
func (a *podAttempt) preemption(plugin *defaultpreemption.DefaultPreemption, state fwk.CycleState, statuses *framework.NodeToStatus) *preemptionResult {
	evaluator := plugin.Evaluator
	result := &preemptionResult{}
	result.Eligible, result.Reason = evaluator.PodEligibleToPreemptOthers(a.ctx, a.pod, statuses.Get(a.pod.Status.NominatedNodeName))
	if !result.Eligible {
		return result
	}
	nodes, err := statuses.NodesForStatusCode(a.scheduler.nodeInfoSnapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		panic(err)
	}
	if len(nodes) == 0 {
		return result
	}
	for _, node := range nodes {
		result.Potential = append(result.Potential, node.Node().Name)
	}
	sort.Strings(result.Potential)
	budgets, err := evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		panic(err)
	}
	// One more than there are nodes, or the search would be cut short when the last but one is found.
	candidates, failures, _ := evaluator.DryRunPreemption(a.ctx, state, a.pod, nodes, budgets, 0, int32(len(nodes)+1))
	result.Candidates = map[string]candidateResult{}
	for _, candidate := range candidates {
		entry := candidateResult{PDBViolations: candidate.Victims().NumPDBViolations}
		for _, victim := range candidate.Victims().Pods {
			entry.Victims = append(entry.Victims, nameOf(victim))
		}
		result.Candidates[candidate.Name()] = entry
	}
	result.Statuses = map[string]*statusResult{}
	for _, name := range result.Potential {
		if _, ok := result.Candidates[name]; !ok {
			result.Statuses[name] = described(failures.Get(name))
		}
	}
	if result.Best = cheapest(candidates); len(result.Best) > 0 {
		result.Chosen = result.Best[0]
		result.Victims = result.Candidates[result.Chosen].Victims
	}
	return result
}

// cheapest are the candidates of which the real plugin takes any: equal in all five respects.
func cheapest(candidates []preemption.Candidate) []string {
	var found []string
	var least []int64
	for _, candidate := range candidates {
		cost := costOf(candidate.Victims())
		order := slices.Compare(cost, least)
		if found == nil || order < 0 {
			found, least = nil, cost
			order = 0
		}
		if order == 0 {
			found = append(found, candidate.Name())
		}
	}
	sort.Strings(found)
	return found
}

const costParts = 5

// costOf is budgets that would be violated, highest priority, sum of priorities, number, and age of the victims.
func costOf(victims *extenderv1.Victims) []int64 {
	highest := int64(priorityOf(victims.Pods[0]))
	var sum int64
	earliest := time.Time{}
	for _, victim := range victims.Pods {
		priority := int64(priorityOf(victim))
		sum += priority + math.MaxInt32 + 1
		started := startOf(victim)
		if priority == highest && (earliest.IsZero() || started.Before(earliest)) {
			earliest = started
		}
	}
	return []int64{victims.NumPDBViolations, highest, sum, int64(len(victims.Pods)), -earliest.UnixNano()}
}

// startOf takes pods that have not started for pods that start now: at the same moment, whenever they are looked at.
func startOf(pod *v1.Pod) time.Time {
	if pod.Status.StartTime == nil {
		return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return pod.Status.StartTime.Time
}
