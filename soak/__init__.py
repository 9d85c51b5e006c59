"""A long run in which everything comes and goes and much goes wrong; at the end nothing may be wrong: `make soak`."""
