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
    kinds.CRON_JOBS: {
        "spec": {
            "schedule": "*/5 * * * mon-fri",
            "timeZone": "Europe/Berlin",
            "jobTemplate": {"spec": {"template": {"spec": {**_PLAIN_POD, "restartPolicy": "Never"}}}},
        }
    },
    kinds.AUTOSCALERS: {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        }
    },
    kinds.OLDER_AUTOSCALERS: {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            "targetCPUUtilizationPercentage": 70,
        }
    },
    kinds.INGRESSES: {
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": ["shop.example.com"], "secretName": "shop"}],
            "rules": [
                {
                    "host": "shop.example.com",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "web", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
        }
    },
    kinds.NETWORK_POLICIES: {
        "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": [{"ports": [{"port": 53}]}]}
    },
    kinds.LIMIT_RANGES: {
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}}]}
    },
    kinds.RESOURCE_QUOTAS: {
        "spec": {"hard": {"pods": "10", "requests.cpu": "4", "limits.memory": "8Gi"}, "scopes": ["NotTerminating"]}
    },
    kinds.RUNTIME_CLASSES: {"handler": "gvisor", "overhead": {"podFixed": {"cpu": "250m"}}},
    kinds.CERTIFICATE_SIGNING_REQUESTS: {
        "spec": {"request": "aGk=", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    },
    kinds.BUILT_IN["v1", "Endpoints"]: {
        "subsets": [{"addresses": [{"ip": "10.64.0.2"}], "ports": [{"port": 80, "name": "http"}]}]
    },
    kinds.BUILT_IN["v1", "PodTemplate"]: {"template": _TEMPLATE},
    kinds.BUILT_IN["discovery.k8s.io/v1", "EndpointSlice"]: {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.64.0.2"], "conditions": {"ready": True}}],
        "ports": [{"port": 80, "name": "http", "protocol": "TCP"}],
    },
    kinds.BUILT_IN["rbac.authorization.k8s.io/v1", "Role"]: {
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    },
    kinds.BUILT_IN["rbac.authorization.k8s.io/v1", "ClusterRole"]: {
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    },
    kinds.BUILT_IN["rbac.authorization.k8s.io/v1", "RoleBinding"]: {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"},
        "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "default"}],
    },
    kinds.BUILT_IN["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"]: {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "web"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
    },
    kinds.BUILT_IN["networking.k8s.io/v1", "IngressClass"]: {"spec": {"controller": "example.com/ingress"}},
    kinds.BUILT_IN["networking.k8s.io/v1", "IPAddress"]: {
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "web"}}
    },
    kinds.BUILT_IN["networking.k8s.io/v1", "ServiceCIDR"]: {"spec": {"cidrs": ["10.96.0.0/12"]}},
    kinds.BUILT_IN["storage.k8s.io/v1", "VolumeAttributesClass"]: {
        "driverName": "csi.example.com",
        "parameters": {"iops": "3000"},
    },
    **{
        kinds.BUILT_IN["admissionregistration.k8s.io/v1", f"{way}WebhookConfiguration"]: {
            "webhooks": [
                {
                    "name": "hook.example.com",
                    "clientConfig": {"url": "https://hook.example.com"},
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ]
        }
        for way in ("Mutating", "Validating")
    },
    kinds.POD_DISRUPTION_BUDGETS: {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    kinds.PRIORITY_CLASSES: {"value": 1000, "globalDefault": True},
    kinds.POD_GROUPS: {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}},
    kinds.WORKLOADS: {
        "spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 4}}}]}
    },
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
