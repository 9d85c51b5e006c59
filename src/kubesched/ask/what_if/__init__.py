"""What if? Changes to a cluster, and the difference they make: who moves, who waits, who is evicted, how full it gets.

Pure: objects and settings in, an answer out. The same scheduler runs on the cluster as it is and as it would be.
"""
