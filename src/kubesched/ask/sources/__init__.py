"""Where the cluster comes from that questions are about: a live API server, or a snapshot that was taken of one."""
