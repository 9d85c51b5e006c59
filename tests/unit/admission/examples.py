"""One object of every kind that is served, as a client would send it."""

from __future__ import annotations

from typing import Any

from kubesched.api import kinds
from kubesched.api.kinds import CONTROLLER_REVISIONS, Object, Resource

POD_SPEC: Object = {
    "containers": [
        {
            "name": "main",
            "image": "nginx:1.27",
            "ports": [{"name": "http", "containerPort": 80, "hostPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {
                "requests": {"cpu": "100m"},
                "limits": {"cpu": 1, "example.com/gpu": "2"},
                "claims": [{"name": "gpu"}],
            },
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "livenessProbe": {"exec": {"command": ["true"]}},
            "readinessProbe": {"httpGet": {"port": "http"}},
        }
    ],
    "initContainers": [{"name": "sidecar", "image": "a:1", "restartPolicy": "Always"}],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "tmp"},
        {"name": "config", "configMap": {"name": "config"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    ],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["3"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                    }
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {}}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "mismatchLabelKeys": ["rev"]}
            ],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "host", "namespaces": ["default"]}}
            ],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 2,
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "matchLabelKeys": ["rev"],
        }
    ],
    "schedulingGates": [{"name": "example.com/wait"}],
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
    "overhead": {"cpu": "10m"},
    "resources": {"limits": {"cpu": "2", "memory": "4Gi"}},
}
_LABELS = {"app": "web", "rev": "1"}
_PLAIN_POD: Object = {"containers": [{"name": "main", "image": "nginx:1.27"}]}
_TEMPLATE: Object = {"metadata": {"labels": _LABELS}, "spec": _PLAIN_POD}
_SELECTOR: Object = {"matchLabels": {"app": "web"}}
_CLAIM: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_DEVICE_CLAIM: Object = {
    "devices": {
        "requests": [
            {"name": "one", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}]}},
            {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu", "tolerations": [{}]}]},
        ],
        "constraints": [{"requests": ["one", "any/big"], "matchAttribute": "example.com/model"}],
    }
}


def example(resource: Resource) -> Object:
    """The example of this kind, complete with metadata."""
    metadata: Object = {"name": "web", "uid": "7f3c", "labels": dict(_LABELS), "annotations": {"example.com/a": "b"}}
    metadata["finalizers"] = ["example.com/hold"]
    metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True}]
    if resource.namespaced:
        metadata["namespace"] = "default"
    if resource == kinds.CUSTOM_RESOURCE_DEFINITIONS:
        metadata["name"] = "rockets.example.com"
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return {**head, **EXAMPLES.get(resource, {})}


EXAMPLES: dict[Resource, dict[str, Any]] = {
    kinds.NAMESPACES: {},
    kinds.NODES: {
        "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "podCIDRs": ["10.0.0.0/24"]},
        "status": {"capacity": {"cpu": "4", "pods": 110}, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    kinds.PODS: {"spec": POD_SPEC},
    kinds.SERVICES: {"spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]}},
    kinds.PERSISTENT_VOLUMES: {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": "v"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{}]}},
        }
    },
    kinds.PERSISTENT_VOLUME_CLAIMS: {"spec": _CLAIM},
    kinds.REPLICATION_CONTROLLERS: {"spec": {"template": _TEMPLATE}},
    kinds.CORE_EVENTS: {"involvedObject": {"namespace": "default", "name": "x"}, "reason": "Because"},
    kinds.EVENTS: {"regarding": {"namespace": "default", "name": "x"}, "reason": "Because"},
    kinds.CONFIG_MAPS: {"data": {"a": "b"}, "binaryData": {"c": "aGk="}},
    kinds.SECRETS: {"stringData": {"password": "secret"}, "data": {"user": "aGk="}},
    kinds.SERVICE_ACCOUNTS: {"secrets": [{"name": "token"}]},
    kinds.DEPLOYMENTS: {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    kinds.REPLICA_SETS: {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    kinds.STATEFUL_SETS: {
        "spec": {
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "serviceName": "web",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}],
        }
    },
    kinds.DAEMON_SETS: {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    CONTROLLER_REVISIONS: {"data": {"a": 1}, "revision": 1},
    kinds.JOBS: {"spec": {"template": {"spec": {**_PLAIN_POD, "restartPolicy": "Never"}}}},
    kinds.POD_DISRUPTION_BUDGETS: {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    kinds.PRIORITY_CLASSES: {"value": 1000, "globalDefault": True},
    kinds.STORAGE_CLASSES: {
        "provisioner": "csi.example.com",
        "parameters": {"type": "fast"},
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    kinds.CSI_NODES: {
        "spec": {
            "drivers": [{"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": 3}, "topologyKeys": []}]
        }
    },
    kinds.CSI_DRIVERS: {"spec": {"attachRequired": True}},
    kinds.CSI_STORAGE_CAPACITIES: {"storageClassName": "fast", "capacity": "1Ti", "nodeTopology": _SELECTOR},
    kinds.VOLUME_ATTACHMENTS: {
        "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}}
    },
    kinds.LEASES: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1}},
    kinds.RESOURCE_SLICES: {
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "gpu-0",
                    "attributes": {"model": {"string": "a"}},
                    "capacity": {"memory": {"value": "80Gi"}},
                }
            ],
        }
    },
    kinds.RESOURCE_CLAIMS: {"spec": _DEVICE_CLAIM},
    kinds.RESOURCE_CLAIM_TEMPLATES: {"spec": {"spec": _DEVICE_CLAIM}},
    kinds.DEVICE_CLASSES: {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    kinds.CUSTOM_RESOURCE_DEFINITIONS: {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "rockets", "kind": "Rocket", "shortNames": ["rk"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "additionalPrinterColumns": [{"name": "Stage", "type": "string", "jsonPath": ".status.stage"}],
                }
            ],
        }
    },
}

ROCKETS = Resource("example.com", "v1", "rockets", "Rocket", subresources=("status",))
"""A custom resource."""
