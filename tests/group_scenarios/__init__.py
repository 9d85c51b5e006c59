"""What becomes of pod groups, told once: in memory and on a real API server. UPSTREAM.md: cases they stand for."""
