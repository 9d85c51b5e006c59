"""Two plugins for kubesched; docs/writing-a-plugin.md walks through them."""
