"""The command line of `kubesched run`: kube-scheduler's flags, read and shown in pflag's manner."""
