"""The sandbox on a terminal: what is seen (picture), how it is drawn (screen, node_map, lists), keys to look around."""
