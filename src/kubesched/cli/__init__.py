"""The `kubesched` command: argument parsing and printing only."""
