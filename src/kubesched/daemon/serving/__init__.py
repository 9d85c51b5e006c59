"""The HTTPS endpoints: health, metrics, configuration and debugging, for those whom the cluster lets in."""
