"""Benchmarks: `make bench` prints a table and writes bench/latest.json. CPU time, medians of several runs."""
