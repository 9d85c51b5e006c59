"""Storage as people meet it first: the textbook's StatefulSet, and claims that name no class."""

from __future__ import annotations

from tests.running_sandbox import Sandbox

from kubesched.api.kinds import STORAGE_CLASSES
from kubesched.api.well_known import DEFAULT_STORAGE_CLASS

WAIT = "--timeout=100s"
TEXTBOOK = """
apiVersion: v1
kind: Service
metadata: {name: nginx, labels: {app: nginx}}
spec:
  ports: [{port: 80, name: web}]
  clusterIP: None
  selector: {app: nginx}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: nginx
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers:
      - name: nginx
        image: registry.k8s.io/nginx-slim:0.21
        ports: [{containerPort: 80, name: web}]
        volumeMounts: [{name: www, mountPath: /usr/share/nginx/html}]
  volumeClaimTemplates:
  - metadata: {name: www}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: early}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
LATE_CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/late
"""


def test_the_textbook_stateful_set_gets_its_volumes_and_runs(sandbox: Sandbox) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=TEXTBOOK)
    sandbox.kubectl("rollout", "status", "statefulset/web", WAIT)
    claims = [line.split() for line in sandbox.kubectl("get", "pvc", "--no-headers").splitlines()]
    assert [(claim[0], claim[1], claim[5]) for claim in claims] == [
        ("www-web-0", "Bound", "standard"),
        ("www-web-1", "Bound", "standard"),
    ]
    sandbox.kubectl("scale", "statefulset/web", "--replicas=3")
    sandbox.kubectl("rollout", "status", "statefulset/web", WAIT)
    sandbox.kubectl("delete", "-f", "-", stdin=TEXTBOOK)
    assert sandbox.kubectl("get", "pvc", "-o", "name").split() == [
        f"persistentvolumeclaim/www-web-{ordinal}" for ordinal in range(3)
    ]


def test_a_mount_of_a_volume_that_nobody_provides_is_refused(sandbox: Sandbox) -> None:
    told = sandbox.kubectl("apply", "-f", "-", stdin=TEXTBOOK.replace("{name: www,", "{name: other,"), fails=True)
    assert 'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other"' in told


def test_a_default_class_that_comes_later_is_given_to_a_claim_that_waits(sandbox: Sandbox) -> None:
    sandbox.kubectl("annotate", "storageclass", "standard", f"{DEFAULT_STORAGE_CLASS}-")
    sandbox.kubectl("apply", "-f", "-", stdin=CLAIM)
    assert "storageClassName" not in sandbox.kubectl("get", "pvc", "early", "-o", "yaml")
    sandbox.kubectl("apply", "-f", "-", stdin=LATE_CLASS)
    sandbox.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/early", WAIT)
    assert sandbox.kubectl("get", "pvc", "early", "-o", "jsonpath={.spec.storageClassName}") == "late"
    sandbox.kubectl("annotate", "storageclass", "standard", f"{DEFAULT_STORAGE_CLASS}=true")
    sandbox.call(lambda api: api.delete(STORAGE_CLASSES, "", "late"))
