// Built inside a Kubernetes source tree: the devices that claims get, and those that are in use.
package scheduler

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sort"
)

// nodeAllocations notes what claims would get on each node that fits.
func (a *podAttempt) nodeAllocations(feasible []fwk.NodeInfo) {
	for _, node := range feasible {
		name := node.Node().Name
		allocations := dynamicresources.AllocationsOn(a.state, name)
		if allocations == nil {
			continue
		}
		entry := map[string]any{}
		for _, allocation := range allocations {
			entry[allocation.Claim.Name] = allocationOf(allocation)
		}
		if a.result.NodeAllocations == nil {
			a.result.NodeAllocations = map[string]map[string]any{}
		}
		a.result.NodeAllocations[name] = entry
	}
}

func (a *podAttempt) allocationsOn(node string) map[string][]map[string]any {
	found := map[string][]map[string]any{}
	for claim, allocation := range a.result.NodeAllocations[node] {
		found[claim] = allocation.(map[string]any)["devices"].([]map[string]any)
	}
	return found
}

func allocationOf(allocation dynamicresources.RecordedAllocation) map[string]any {
	devices := []map[string]any{}
	for _, device := range allocation.Result.Devices.Results {
		devices = append(devices, deviceOf(device))
	}
	entry := map[string]any{"devices": devices}
	if allocation.Result.NodeSelector != nil {
		entry["nodeSelector"] = allocation.Result.NodeSelector
	}
	if len(allocation.Mappings) > 0 {
		var requests []any
		for _, request := range allocation.Claim.Spec.Devices.Requests {
			exactly := request.Exactly
			requests = append(requests, map[string]any{"name": request.Name, "class": exactly.DeviceClassName, "count": exactly.Count})
		}
		var mappings []string
		for _, mapping := range allocation.Mappings {
			mappings = append(mappings, mapping.ContainerName+" "+mapping.ResourceName+" "+mapping.RequestName)
		}
		entry["requests"], entry["mappings"] = requests, mappings
	}
	return entry
}

func deviceOf(device resourcev1.DeviceRequestAllocationResult) map[string]any {
	entry := map[string]any{"request": device.Request, "driver": device.Driver, "pool": device.Pool, "device": device.Device}
	if device.AdminAccess != nil && *device.AdminAccess {
		entry["adminAccess"] = true
	}
	if device.ShareID != nil {
		entry["shared"] = true // the id itself is random
	}
	if len(device.ConsumedCapacity) > 0 {
		entry["consumedCapacity"] = device.ConsumedCapacity
	}
	if len(device.Tolerations) > 0 {
		entry["tolerations"] = len(device.Tolerations)
	}
	if len(device.BindingConditions) > 0 {
		entry["bindingConditions"] = device.BindingConditions
	}
	if len(device.BindingFailureConditions) > 0 {
		entry["bindingFailureConditions"] = device.BindingFailureConditions
	}
	return entry
}

// inUse is the scheduler's view of all devices, with those that are about to be written.
func (a *podAttempt) inUse() map[string]any {
	state, err := a.profile.SharedDRAManager().ResourceClaims().GatherAllocatedState()
	if err != nil {
		panic(err)
	}
	entry := map[string]any{}
	var devices []string
	for device := range state.AllocatedDevices {
		devices = append(devices, device.String())
	}
	if len(devices) > 0 {
		sort.Strings(devices)
		entry["devices"] = devices
	}
	capacity := map[string]any{}
	for device, amounts := range state.AggregatedCapacity {
		capacity[device.String()] = amounts
	}
	if len(capacity) > 0 {
		entry["capacity"] = capacity
	}
	if len(entry) == 0 {
		return nil
	}
	return entry
}

// writeClaims is what DynamicResources does before a pod is bound, if it has anything to do.
func (a *podAttempt) writeClaims(pod *v1.Pod, node string) *fwk.Status {
	plugin, ok := frameworkruntime.PluginOf(a.profile, names.DynamicResources).(fwk.PreBindPlugin)
	if !ok {
		return nil
	}
	if _, status := plugin.PreBindPreFlight(a.ctx, a.state, pod, node); !status.IsSuccess() {
		if status.IsSkip() {
			return nil
		}
		return status
	}
	return plugin.PreBind(a.ctx, a.state, pod, node)
}
