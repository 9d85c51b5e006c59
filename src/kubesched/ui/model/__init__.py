"""What the page shows, as aggregates and differences: it never sends a whole cluster. Pure but for clocks passed in."""
