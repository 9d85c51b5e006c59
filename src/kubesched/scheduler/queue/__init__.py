"""The scheduling queue: where every pending pod waits, and what wakes it."""
