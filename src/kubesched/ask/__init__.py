"""Questions about a cluster and their answers: why is it pending, what would help, what if. Above `simulate`."""
