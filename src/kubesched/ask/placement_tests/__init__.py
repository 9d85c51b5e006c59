"""Placement tests: cases that say where pods have to land and where never, run by the real scheduler."""
