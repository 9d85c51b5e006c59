"""What several plugins need: hints, integer arithmetic as in Go, CSI nodes and migration, volume claims."""
