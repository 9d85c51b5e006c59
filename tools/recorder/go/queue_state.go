// Built inside a Kubernetes source tree: where every pod is, and what the queue remembers of it.
package scheduler

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type queueState struct {
	Active         []string             `json:"active,omitempty"`
	Backoff        []string             `json:"backoff,omitempty"`
	ErrorBackoff   []string             `json:"errorBackoff,omitempty"`
	Unschedulable  []string             `json:"unschedulable,omitempty"`
	Gated          []string             `json:"gated,omitempty"`
	InFlight       []string             `json:"inFlight,omitempty"`
	Assumed        []string             `json:"assumed,omitempty"`
	InFlightEvents []string             `json:"inFlightEvents,omitempty"`
	Nominated      map[string][]string  `json:"nominated,omitempty"`
	Pods           map[string]*podEntry `json:"pods,omitempty"`
}

type podEntry struct {
	Place                string   `json:"place"`
	UID                  string   `json:"uid"`
	Attempts             int      `json:"attempts"`
	UnschedulableCount   int      `json:"unschedulableCount,omitempty"`
	ErrorCount           int      `json:"errorCount,omitempty"`
	Timestamp            float64  `json:"timestamp"`
	BackoffUntil         float64  `json:"backoffUntil,omitempty"`
	BackoffRemaining     float64  `json:"backoffRemaining,omitempty"`
	UnschedulablePlugins []string `json:"unschedulablePlugins,omitempty"`
	PendingPlugins       []string `json:"pendingPlugins,omitempty"`
	GatingPlugin         string   `json:"gatingPlugin,omitempty"`
	Flushed              bool     `json:"flushed,omitempty"`
	Nominator            string   `json:"nominator,omitempty"`
	NominatedNodeName    string   `json:"nominatedNodeName,omitempty"`
}

func (l *queueLife) state() *queueState {
	contents := l.queue.Contents()
	state := &queueState{InFlightEvents: contents.InFlightEvents, Nominated: contents.Nominated, Pods: map[string]*podEntry{}}
	var unschedulable, gated, inFlight []*framework.QueuedPodInfo
	for _, queued := range contents.Unschedulable {
		if queued.Gated() {
			gated = append(gated, queued)
		} else {
			unschedulable = append(unschedulable, queued)
		}
	}
	for _, attempt := range l.open {
		if l.queue.IsInFlight(attempt.queued.Pod.UID) {
			inFlight = append(inFlight, attempt.queued)
		}
		if attempt.stage == "assumed" {
			state.Assumed = append(state.Assumed, nameOf(attempt.queued.Pod)+" "+attempt.result.SuggestedHost)
		}
	}
	state.Active = l.describe(state, "active", contents.Active)
	state.Backoff = l.describe(state, "backoff", contents.Backoff)
	state.ErrorBackoff = l.describe(state, "errorBackoff", contents.ErrorBackoff)
	state.Unschedulable = l.describe(state, "unschedulable", unschedulable)
	state.Gated = l.describe(state, "gated", gated)
	state.InFlight = l.describe(state, "inFlight", inFlight)
	return state
}

func (l *queueLife) describe(state *queueState, place string, pods []*framework.QueuedPodInfo) []string {
	var names []string
	for _, queued := range pods {
		name := nameOf(queued.Pod)
		if _, ok := state.Pods[name]; ok {
			name += "@" + string(queued.Pod.UID)
		}
		names = append(names, name)
		state.Pods[name] = l.entryOf(place, queued)
	}
	return names
}

func (l *queueLife) entryOf(place string, queued *framework.QueuedPodInfo) *podEntry {
	pod := queued.Pod
	entry := &podEntry{
		Place:                place,
		UID:                  string(pod.UID),
		Attempts:             queued.Attempts,
		UnschedulableCount:   queued.UnschedulableCount,
		ErrorCount:           queued.ConsecutiveErrorsCount,
		Timestamp:            sinceStart(queued.Timestamp),
		UnschedulablePlugins: sets.List(queued.UnschedulablePlugins),
		PendingPlugins:       sets.List(queued.PendingPlugins),
		GatingPlugin:         queued.GatingPlugin,
		Flushed:              queued.WasFlushedFromUnschedulable,
		Nominator:            l.queue.NominatedTo(pod.UID),
		NominatedNodeName:    pod.Status.NominatedNodeName,
	}
	waits := place != "gated" && place != "inFlight"
	if waits && (entry.UnschedulableCount > 0 || entry.ErrorCount > 0) {
		entry.BackoffUntil = sinceStart(l.queue.BackoffUntil(queued))
		if place == "backoff" || place == "errorBackoff" {
			entry.BackoffRemaining = rounded(entry.BackoffUntil - l.now())
		}
	}
	return entry
}

func sinceStart(moment time.Time) float64 { return rounded(moment.Sub(recordingStart).Seconds()) }

func rounded(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }
