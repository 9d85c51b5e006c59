// Built inside a Kubernetes source tree: what a decision of kube-scheduler costs in process, without an API server.
//
//	algorithm -kind basic -nodes 5000 -pods 1000 -percentage 0
//
// prints milliseconds of CPU per pod, of the whole process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

func main() {
	kind := flag.String("kind", "basic", "basic, all-different, spread-soft, spread-hard, preferred-affinity or required-anti-affinity")
	nodes := flag.Int("nodes", 5000, "how many nodes")
	pods := flag.Int("pods", 1000, "how many pods, one after the other")
	percentage := flag.Int("percentage", 0, "percentageOfNodesToScore; 0 is the default sampling")
	flag.Parse()
	if err := measure(*kind, *nodes, *pods, int32(*percentage)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(kind string, nodes, pods int, percentage int32) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	klog.LogToStderr(false)
	klog.SetOutput(os.NewFile(0, os.DevNull))
	client := fake.NewClientset()
	informers := scheduler.NewInformerFactory(client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	sched, err := scheduler.New(ctx, client, informers, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithPercentageOfNodesToScore(&percentage))
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	logger := klog.FromContext(ctx)
	for i := range nodes {
		sched.Cache.AddNode(logger, node(i))
	}
	began := cpu()
	for i := range pods {
		if _, err := sched.DecideAndAssume(ctx, pod(kind, i)); err != nil {
			return err
		}
	}
	fmt.Printf("%.4f\n", float64((cpu()-began).Microseconds())/1000/float64(pods))
	return nil
}

// cpu is what the process has needed so far, all threads together.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func node(i int) *v1.Node {
	name := fmt.Sprintf("node-%05d", i)
	capacity := resources("32", "256Gi")
	capacity[v1.ResourcePods] = resource.MustParse("110")
	capacity[v1.ResourceEphemeralStorage] = resource.MustParse("200Gi")
	labels := map[string]string{
		v1.LabelHostname:       name,
		v1.LabelTopologyZone:   fmt.Sprintf("zone-%d", i%10),
		v1.LabelTopologyRegion: "region-0",
		v1.LabelOSStable:       "linux",
		v1.LabelArchStable:     "amd64",
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     v1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

func pod(kind string, i int) *v1.Pod {
	name := fmt.Sprintf("%s-%d", kind, i)
	labels := map[string]string{"app": kind}
	mine := &metav1.LabelSelector{MatchLabels: labels}
	made := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: labels},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName,
			Containers: []v1.Container{{
				Name: "main", Image: "app:1", Resources: v1.ResourceRequirements{Requests: resources("100m", "500Mi")},
			}},
		},
	}
	spread := v1.TopologySpreadConstraint{MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, LabelSelector: mine}
	term := v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, LabelSelector: mine}
	switch kind {
	case "all-different":
		labels["app"] = fmt.Sprintf("kind-%d", i)
		made.Spec.Containers[0].Resources.Requests = resources(fmt.Sprintf("%dm", 101+i), fmt.Sprintf("%dMi", 501+i))
	case "spread-soft":
		spread.WhenUnsatisfiable = v1.ScheduleAnyway
		made.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread}
	case "spread-hard":
		spread.WhenUnsatisfiable = v1.DoNotSchedule
		made.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread}
	case "preferred-affinity":
		made.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}},
		}}
	case "required-anti-affinity":
		made.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term},
		}}
	}
	return made
}

func resources(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}
