"""Offline: load manifests, ask the engine, report. The same code as on a live cluster, with no cluster at hand."""
