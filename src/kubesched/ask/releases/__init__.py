"""What an upgrade of Kubernetes would change for the pods of a cluster, and by which change of the scheduler."""
