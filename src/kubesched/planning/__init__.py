"""Plans for a cluster that are shown before they happen, with a bound that says how far from the best they are."""
