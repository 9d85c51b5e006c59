// Built inside a Kubernetes source tree: one scheduler, unmodified, on objects in memory.
package scheduler

import (
	"context"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

const everyNode = 100 // percent, so that no decision depends on a sample

// Recorders take a case and give its result, by the kind of the case. Each is registered where it is written, so that one
// that does not build in some release can be left out.
var Recorders = map[string]func([]byte) (any, error){}

// world is the scheduler of one case.
type world struct {
	api       *apiServer
	scheduler *Scheduler
	ctx       context.Context
	end       context.CancelFunc
}

// newWorld makes a scheduler as kube-scheduler would with this configuration; an error is the configuration's.
func newWorld(logger klog.Logger, given json.RawMessage, api *apiServer, client kubernetes.Interface, recorder events.EventRecorderLogger, options ...Option) (*world, error) {
	factory, byKind := recordedInformers(client)
	api.informers = byKind
	percentage := int32(everyNode)
	all := []Option{WithParallelism(1), WithPercentageOfNodesToScore(&percentage)}
	if given != nil {
		configured, err := loadConfiguration(given)
		if err != nil {
			return nil, err
		}
		all = append(all, WithProfiles(configured.Profiles...), WithExtenders(configured.Extenders...),
			WithComponentConfigVersion(configured.TypeMeta.APIVersion),
			WithPodInitialBackoffSeconds(configured.PodInitialBackoffSeconds),
			WithPodMaxBackoffSeconds(configured.PodMaxBackoffSeconds))
	}
	ctx, end := context.WithCancel(klog.NewContext(context.Background(), logger))
	recorders := func(string) events.EventRecorderLogger { return recorder }
	scheduler, err := New(ctx, client, factory, nil, recorders, append(all, options...)...)
	if err != nil {
		end()
		return nil, err
	}
	return &world{api, scheduler, ctx, end}, nil
}

// loadConfiguration reads, completes and validates.
func loadConfiguration(given []byte) (*schedulerapi.KubeSchedulerConfiguration, error) {
	configured, err := decodeConfiguration(given)
	if err != nil {
		return nil, err
	}
	if err := validation.ValidateKubeSchedulerConfiguration(configured); err != nil {
		return nil, err
	}
	return configured, nil
}

// pod is the informer's, nil if it has none of that name.
func (w *world) pod(name string) *v1.Pod {
	if known := w.api.informers["Pod"].known(name); known != nil {
		return known.(*v1.Pod)
	}
	return nil
}

// ignoredEvents is for recordings that do not look at Events.
type ignoredEvents struct{}

func (ignoredEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (i ignoredEvents) WithLogger(klog.Logger) events.EventRecorderLogger { return i }
