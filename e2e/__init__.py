"""Kubernetes' own end-to-end suite on a real control plane, with kubesched or kube-scheduler in charge."""
