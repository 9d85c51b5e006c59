// Built inside a Kubernetes source tree: a life of the scheduling queue, step by step, on a clock that is moved by hand.
package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
)

type queueCase struct {
	ID               string            `json:"id"`
	Config           json.RawMessage   `json:"config"`
	Graceful         bool              `json:"graceful"`
	EvictionDelivery string            `json:"evictionDelivery"`
	Objects          []json.RawMessage `json:"objects"`
	Steps            []queueStep       `json:"steps"`
}

type queueStep struct {
	Op      string          `json:"op"`
	Object  json.RawMessage `json:"object"`
	Kind    string          `json:"kind"`
	Name    string          `json:"name"`
	Patch   json.RawMessage `json:"patch"`
	Seconds float64         `json:"seconds"`
	At      string          `json:"at"`
	Pod     string          `json:"pod"`
	Code    int             `json:"code"`
	Count   int             `json:"count"`
}

type queueResult struct {
	ID          string        `json:"id"`
	ConfigError string        `json:"configError,omitempty"`
	Initial     *queueState   `json:"initial,omitempty"`
	Steps       []*stepResult `json:"steps"`
}

type stepResult struct {
	I         int                          `json:"i"`
	Op        string                       `json:"op"`
	T         float64                      `json:"t"`
	Error     string                       `json:"error,omitempty"`
	Popped    string                       `json:"popped,omitempty"`
	From      string                       `json:"from,omitempty"`
	Outcome   string                       `json:"outcome,omitempty"`
	Code      string                       `json:"code,omitempty"`
	Host      string                       `json:"host,omitempty"`
	Moves     []moveEntry                  `json:"moves,omitempty"`
	Hints     []internalqueue.RecordedHint `json:"hints,omitempty"`
	Checked   []string                     `json:"inFlightEventsChecked,omitempty"`
	Bound     []*boundEntry                `json:"bound,omitempty"`
	Evicted   []string                     `json:"evicted,omitempty"`
	Patches   []patchEntry                 `json:"patches,omitempty"`
	Events    []eventEntry                 `json:"events,omitempty"`
	Delivered []string                     `json:"delivered,omitempty"`
	State     *queueState                  `json:"state"`
}

type moveEntry struct {
	Pod   string  `json:"pod"`
	Event string  `json:"event"`
	Queue string  `json:"queue"`
	T     float64 `json:"t"`
}

// queueLife is a case under record.
type queueLife struct {
	*world
	queueCase
	logger         klog.Logger
	clock          *clocktesting.FakeClock
	milliseconds   int
	queue          *internalqueue.PriorityQueue
	open           []*openAttempt
	step           *stepResult
	bindings       int
	bindFailures   map[string][]int
	deleteFailures map[string][]int

	binding        *openAttempt
	evictions      chan struct{}
	held           atomic.Bool
	evictionFailed bool
	activated      chan struct{}
}

func init() { Recorders["queue"] = recordQueue }

// recordQueue takes a case and gives its result; an error says that the case is not one.
func recordQueue(given []byte) (any, error) {
	l := &queueLife{
		clock:          clocktesting.NewFakeClock(recordingStart),
		bindFailures:   map[string][]int{},
		deleteFailures: map[string][]int{},
		step:           &stepResult{},
	}
	if err := json.Unmarshal(given, &l.queueCase); err != nil {
		return nil, err
	}
	l.logger = logr.New(&moveSink{l})
	api := newAPIServer()
	client := newRecordedClient(api, l, func(string, metav1.Object) bool { return true }, l.settle)
	made, err := newWorld(l.logger, l.Config, api, client, l, WithClock(l.clock))
	if err != nil {
		return queueResult{ID: l.ID, ConfigError: err.Error()}, nil
	}
	defer made.end()
	l.world = made
	l.queue = made.scheduler.SchedulingQueue.(*internalqueue.PriorityQueue)
	made.scheduler.SchedulingQueue = recordedQueue{l.queue, l}
	l.settleTies()
	return l.live()
}

func (l *queueLife) live() (any, error) {
	result := queueResult{ID: l.ID}
	for _, document := range l.Objects {
		l.passTime(1)
		key, obj, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.ID, err)
		}
		if err := l.api.create(key, obj); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", l.ID, key.kind, key.name, err)
		}
		l.api.deliver()
	}
	result.Initial = l.state()
	for i, step := range l.Steps {
		l.step = &stepResult{I: i, Op: step.Op}
		l.api.delivered = nil
		l.passTime(1)
		if err := l.carryOut(step); err != nil {
			l.step.Error = err.Error()
		}
		l.api.deliver()
		l.step.T, l.step.Delivered, l.step.State = l.now(), l.api.delivered, l.state()
		result.Steps = append(result.Steps, l.step)
	}
	l.step = &stepResult{}
	for _, attempt := range l.open {
		l.finish(attempt) // nothing of it is recorded, but its goroutine must end
	}
	return result, nil
}

func (l *queueLife) carryOut(step queueStep) error {
	count := max(step.Count, 1)
	switch step.Op {
	case "create":
		key, obj, err := decode(step.Object)
		if err != nil {
			return err
		}
		return l.api.create(key, obj)
	case "update":
		return l.api.merge(objectKey{step.Kind, step.Name}, step.Patch)
	case "delete":
		return l.api.remove(objectKey{step.Kind, step.Name})
	case "terminate":
		return l.terminate(step.Name)
	case "advance":
		l.passTime(int(step.Seconds*1000 + 0.5))
	case "bind-fails":
		for range count {
			l.bindFailures[step.Pod] = append(l.bindFailures[step.Pod], step.Code)
		}
	case "delete-fails":
		for range count {
			l.deleteFailures[step.Pod] = append(l.deleteFailures[step.Pod], step.Code)
		}
	case "schedule":
		l.begin("done")
	case "schedule-begin":
		l.begin(step.At)
	case "schedule-end":
		l.endAttempt(step.Pod)
	default:
		return errors.New("unknown step " + step.Op)
	}
	return nil
}

// passTime moves the clock; timers that fall due on the way see the very time they are due.
func (l *queueLife) passTime(milliseconds int) {
	end := l.milliseconds + milliseconds
	for tick := (l.milliseconds/1000 + 1) * 1000; tick <= end; tick += 1000 {
		l.setTime(tick)
		l.queue.FlushBackoff(l.logger)
		if tick%30_000 == 0 {
			l.queue.FlushLeftovers(l.logger)
		}
	}
	l.setTime(end)
}

func (l *queueLife) setTime(milliseconds int) {
	l.milliseconds = milliseconds
	l.clock.SetTime(recordingStart.Add(time.Duration(milliseconds) * time.Millisecond))
}

func (l *queueLife) now() float64 { return float64(l.milliseconds) / 1000 }

// recordedQueue is the real queue; before an event reaches it, all its hints are asked.
type recordedQueue struct {
	*internalqueue.PriorityQueue
	life *queueLife
}

func (q recordedQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, old, new any, check internalqueue.PreEnqueueCheck) {
	step := q.life.step
	step.Hints = append(step.Hints, q.HintsOfEvent(logr.Discard(), event, old, new, check)...)
	q.PriorityQueue.MoveAllToActiveOrBackoffQueue(logger, event, old, new, check)
}

func (q recordedQueue) Update(ctx context.Context, old, new *v1.Pod) {
	q.life.step.Hints = append(q.life.step.Hints, q.HintsOfUpdate(logr.Discard(), old, new)...)
	q.PriorityQueue.Update(ctx, old, new)
}

// noteReplayed asks about what happened during an attempt, before its pod comes back.
func (q recordedQueue) noteReplayed(queued *framework.QueuedPodInfo) {
	labels, hints := q.Replayed(logr.Discard(), queued)
	q.life.step.Checked = append(q.life.step.Checked, labels...)
	q.life.step.Hints = append(q.life.step.Hints, hints...)
}

// Activate is called by preemptions with a log of their own, which would not be told of the move.
func (q recordedQueue) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	q.PriorityQueue.Activate(q.life.logger, pods)
	if q.life.activated != nil {
		close(q.life.activated)
		q.life.activated = nil
	}
}
