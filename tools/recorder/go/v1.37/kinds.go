// Built inside a Kubernetes source tree: the kinds that came with this release.
package scheduler

import resourcev1 "k8s.io/api/resource/v1"

func init() {
	kind := recordedKinds["DeviceClass"]
	kind.empty, kind.resource = &resourcev1.DeviceTaintRule{}, "devicetaintrules"
	recordedKinds["DeviceTaintRule"] = kind
}
