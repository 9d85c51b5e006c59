// Built inside a Kubernetes source tree: what kube-scheduler decides about the pending pods of a case.
package scheduler

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type decisionCase struct {
	ID      string            `json:"id"`
	Config  json.RawMessage   `json:"config"`
	Objects []json.RawMessage `json:"objects"`
	Pending []string          `json:"pending"`
	Mode    string            `json:"mode"`
}

type decisionResult struct {
	ID          string                        `json:"id"`
	ConfigError string                        `json:"configError,omitempty"`
	Plugins     map[string]map[string][]named `json:"plugins,omitempty"`
	NodeOrder   []string                      `json:"nodeOrder,omitempty"`
	QueueOrder  []string                      `json:"queueOrder,omitempty"`
	Pods        []*podResult                  `json:"pods"`
}

type named struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
}

// decisions is a case under record.
type decisions struct {
	*world
	decisionCase
	gone     map[string]bool
	bindings int

	lock        sync.Mutex
	claimWrites []string
	applyWrites bool
}

func init() { Recorders["decisions"] = recordDecisions }

// recordDecisions takes a case and gives its result; an error says that the case is not one.
func recordDecisions(given []byte) (any, error) {
	d := &decisions{gone: map[string]bool{}}
	if err := json.Unmarshal(given, &d.decisionCase); err != nil {
		return nil, err
	}
	d.applyWrites = d.Mode == "sequence-bind"
	api := newAPIServer()
	client := newRecordedClient(api, d, d.written, func(objectKey) { api.deliver() })
	made, err := newWorld(klog.Logger{}, d.Config, api, client, ignoredEvents{})
	if err != nil {
		return decisionResult{ID: d.ID, ConfigError: err.Error()}, nil
	}
	defer made.end()
	d.world = made
	if err := d.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.ID, err)
	}
	result := decisionResult{ID: d.ID, QueueOrder: d.queueOrder()}
	if d.Config != nil {
		result.Plugins = d.plugins()
	}
	if err := d.scheduler.Cache.UpdateSnapshot(klog.FromContext(d.ctx), d.scheduler.nodeInfoSnapshot); err != nil {
		return nil, err
	}
	for _, node := range d.nodes() {
		result.NodeOrder = append(result.NodeOrder, node.Node().Name)
	}
	for _, name := range d.Pending {
		result.Pods = append(result.Pods, d.attempt(name))
	}
	return result, nil
}

// load delivers the objects in order of namespace and name, pods after everything else.
func (d *decisions) load() error {
	pending := map[string]bool{}
	for _, name := range d.Pending {
		pending[name] = true
	}
	for _, wantPods := range []bool{false, true} {
		for _, document := range d.Objects {
			key, obj, err := decode(document)
			if err != nil {
				return err
			}
			if (key.kind == "Pod") != wantPods {
				continue
			}
			if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName == "" && !pending[key.name] {
				pod.Status.NominatedNodeName = "" // only pods that are asked about count as nominated
			}
			if err := d.api.create(key, obj); err != nil {
				return fmt.Errorf("%s %s: %w", key.kind, key.name, err)
			}
		}
		sort.SliceStable(d.api.unseen, func(i, j int) bool {
			return compareKeys(d.api.unseen[i].obj, d.api.unseen[j].obj) < 0
		})
		d.api.deliver()
	}
	return nil
}

func (d *decisions) nodes() []fwk.NodeInfo {
	nodes, err := d.scheduler.nodeInfoSnapshot.List()
	if err != nil {
		panic(err)
	}
	return nodes
}

// queueOrder sorts the pending pods as if they had come one after the other.
func (d *decisions) queueOrder() []string {
	var waiting []*framework.QueuedPodInfo
	seen := map[string]bool{}
	for i, name := range d.Pending {
		pod := d.pod(name)
		if pod == nil || pod.Spec.NodeName != "" || seen[name] {
			continue
		}
		seen[name] = true
		queued := newQueued(pod)
		queued.Timestamp = recordingStart.Add(time.Duration(i) * time.Second)
		waiting = append(waiting, queued)
	}
	var less fwk.LessFunc
	for _, profile := range d.scheduler.Profiles {
		less = profile.QueueSortFunc()
	}
	sort.SliceStable(waiting, func(i, j int) bool { return less(waiting[i], waiting[j]) })
	names := []string{}
	for _, queued := range waiting {
		names = append(names, nameOf(queued.Pod))
	}
	return names
}

func newQueued(pod *v1.Pod) *framework.QueuedPodInfo {
	// Terms that cannot be read are left out, as the scheduler does.
	info, _ := framework.NewPodInfo(pod)
	return &framework.QueuedPodInfo{PodInfo: info}
}

// plugins are those of each profile and extension point, in the order in which they run.
func (d *decisions) plugins() map[string]map[string][]named {
	found := map[string]map[string][]named{}
	for name, profile := range d.scheduler.Profiles {
		listed := profile.ListPlugins()
		points := map[string]schedulerapi.PluginSet{
			"preEnqueue": listed.PreEnqueue, "queueSort": listed.QueueSort, "preFilter": listed.PreFilter,
			"filter": listed.Filter, "postFilter": listed.PostFilter, "preScore": listed.PreScore,
			"score": listed.Score, "reserve": listed.Reserve, "permit": listed.Permit,
			"preBind": listed.PreBind, "bind": listed.Bind, "postBind": listed.PostBind,
		}
		found[name] = map[string][]named{}
		for point, set := range points {
			var plugins []named
			for _, plugin := range set.Enabled {
				plugins = append(plugins, named{plugin.Name, plugin.Weight})
			}
			found[name][point] = plugins
		}
	}
	return found
}

// -- what the scheduler writes -------------------------------------------------------------------------------------

// written notes a write about a claim and says whether it is made.
func (d *decisions) written(verb string, obj metav1.Object) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	claim, ok := obj.(*resourcev1.ResourceClaim)
	if !ok {
		return d.applyWrites
	}
	if verb == "update" {
		before, err := d.api.get(objectKey{"ResourceClaim", nameOf(claim)})
		if err != nil {
			return d.applyWrites
		}
		verb = claimVerb(before.(*resourcev1.ResourceClaim), claim)
	}
	if last := len(d.claimWrites) - 1; verb == "delete" && last >= 0 && d.claimWrites[last] == "deallocate "+claim.Name {
		d.claimWrites = d.claimWrites[:last] // emptied only to be deleted
	}
	if verb != "" && verb != "create" {
		d.claimWrites = append(d.claimWrites, verb+" "+claim.Name)
	}
	return d.applyWrites
}

// Pods are written by the recording itself: see carryOut.
func (d *decisions) bind(*v1.Binding) error           { return nil }
func (d *decisions) patchStatus(string, []byte) error { return nil }
func (d *decisions) evict(string) error               { return nil }

func (d *decisions) takeClaimWrites() []string {
	d.lock.Lock()
	defer d.lock.Unlock()
	taken := d.claimWrites
	d.claimWrites = nil
	return taken
}

// -- one after the other -------------------------------------------------------------------------------------------

// carryOut does to the cluster what the decision was, in the modes in which pods see each other.
func (d *decisions) carryOut(result *podResult, attempt *podAttempt) {
	switch result.Outcome {
	case "scheduled":
		d.place(result, attempt)
	case "unschedulable":
		if result.PostFilter != nil && result.PostFilter.Nominating != nil {
			d.nominate(result, attempt)
		}
	}
	result.InUse = attempt.inUse()
}

// place assumes, reserves, writes claims if the mode says so, and binds.
func (d *decisions) place(result *podResult, attempt *podAttempt) {
	sched, profile := d.scheduler, attempt.profile
	logger := klog.FromContext(d.ctx)
	assumed := newQueued(attempt.pod.DeepCopy())
	if err := sched.assume(logger, attempt.state, assumed, result.Chosen); err != nil {
		panic(err)
	}
	give := func(status *fwk.Status, plugin, outcome string) {
		d.takeClaimWrites()
		if err := sched.unreserveAndForget(d.ctx, attempt.state, profile, assumed, result.Chosen); err != nil {
			panic(err)
		}
		failed := described(status)
		failed.Plugin = plugin
		result.Outcome, result.Reserve = outcome, failed
		result.ClaimWrites = d.takeClaimWrites()
	}
	if status := profile.RunReservePluginsReserve(d.ctx, attempt.state, assumed.Pod, result.Chosen); !status.IsSuccess() {
		give(status, status.Plugin(), "reserve-failed")
		return
	}
	if d.Mode == "sequence-bind" {
		if status := attempt.writeClaims(assumed.Pod, result.Chosen); !status.IsSuccess() {
			give(status, "PreBind", "prebind-failed")
			return
		}
	}
	d.takeClaimWrites()
	started := metav1.NewTime(recordingStart.Add(time.Duration(d.bindings) * time.Second))
	d.bindings++
	d.edit(attempt.pod, func(pod *v1.Pod) {
		pod.Spec.NodeName, pod.Status.NominatedNodeName, pod.Status.StartTime = result.Chosen, "", &started
	})
}

// nominate evicts the victims and takes the nominations of lesser pods away.
func (d *decisions) nominate(result *podResult, attempt *podAttempt) {
	node := *result.PostFilter.Nominating
	evicted := false
	for _, name := range result.PostFilter.Victims {
		if victim := d.pod(name); victim.DeletionTimestamp == nil {
			if err := d.api.remove(objectKey{"Pod", name}); err != nil {
				panic(err)
			}
			d.api.deliver()
			d.gone[name] = true
			evicted = true
		}
	}
	if evicted {
		for _, other := range d.scheduler.SchedulingQueue.NominatedPodsForNode(node) {
			if priorityOf(other.GetPod()) < priorityOf(attempt.pod) {
				d.edit(other.GetPod(), func(pod *v1.Pod) { pod.Status.NominatedNodeName = "" })
			}
		}
	}
	d.edit(attempt.pod, func(pod *v1.Pod) { pod.Status.NominatedNodeName = node })
}

func (d *decisions) edit(pod *v1.Pod, edit func(*v1.Pod)) {
	key := objectKey{"Pod", nameOf(pod)}
	stored, err := d.api.get(key)
	if err != nil {
		panic(err)
	}
	changed := stored.DeepCopyObject().(*v1.Pod)
	edit(changed)
	if _, err := d.api.replace(key, changed); err != nil {
		panic(err)
	}
	d.api.deliver()
}

func priorityOf(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// whySkipped says why there is nothing to decide, "" if there is.
func (d *decisions) whySkipped(name string, pod *v1.Pod) string {
	switch {
	case pod == nil && !d.gone[name] && d.wasGivenBound(name):
		return "already bound"
	case pod == nil:
		return "pod not found"
	case pod.Spec.NodeName != "":
		return "already bound"
	case !d.scheduler.Profiles.HandlesSchedulerName(pod.Spec.SchedulerName):
		return "no profile for schedulerName"
	}
	return ""
}

func (d *decisions) wasGivenBound(name string) bool {
	stored, err := d.api.get(objectKey{"Pod", name})
	return err == nil && stored.(*v1.Pod).Spec.NodeName != "" && strings.Contains(name, "/")
}
