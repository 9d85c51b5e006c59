// Built inside a Kubernetes source tree: what Filter noted about the claims of a pod.
package dynamicresources

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// RecordedAllocation is what one claim would get on a node.
type RecordedAllocation struct {
	Claim    *resourceapi.ResourceClaim
	Result   resourceapi.AllocationResult
	Mappings []v1.ContainerExtendedResourceRequest
}

// AllocationsOn are those of the claims that still need one, nil if Filter did not get so far.
func AllocationsOn(state fwk.CycleState, node string) []RecordedAllocation {
	data, err := getStateData(state)
	if err != nil {
		return nil
	}
	found, ok := data.nodeAllocations[node]
	if !ok {
		return nil
	}
	var fresh, pending []RecordedAllocation
	for index, claim := range data.claims.toAllocate() {
		if claim == data.claims.extendedResourceClaim() {
			if found.extendedResourceClaim == nil {
				fresh = append(fresh, RecordedAllocation{Claim: claim})
				continue
			}
			claim = found.extendedResourceClaim
			fresh = append(fresh, RecordedAllocation{Claim: claim, Mappings: found.containerResourceRequestMappings})
		} else if data.informationsForClaim[index].allocation != nil {
			pending = append(pending, RecordedAllocation{Claim: claim})
		} else {
			fresh = append(fresh, RecordedAllocation{Claim: claim})
		}
	}
	all := append(fresh, pending...)
	for i := range all {
		if i < len(found.allocationResults) {
			all[i].Result = found.allocationResults[i]
		}
	}
	return all
}

// Deallocatable are the claims of which PostFilter takes one, at random.
func Deallocatable(state fwk.CycleState, pod *v1.Pod) []*resourceapi.ResourceClaim {
	data, err := getStateData(state)
	if err != nil {
		return nil
	}
	var found []*resourceapi.ResourceClaim
	for index := range data.unavailableClaims {
		claim := data.claims.get(index)
		users := claim.Status.ReservedFor
		idle := len(users) == 0 || len(users) == 1 && users[0].UID == pod.UID
		if idle && claim != data.claims.extendedResourceClaim() {
			found = append(found, claim)
		}
	}
	return found
}
