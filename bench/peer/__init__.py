"""Both schedulers side by side: kubesched and kube-scheduler as processes of their own, on one real control plane."""
