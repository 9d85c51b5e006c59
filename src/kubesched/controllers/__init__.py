"""What the controllers of workloads, claims and volumes make, as pure functions on objects in JSON.

The sandbox's controllers call them when something changes; a simulation calls them once, before its clock starts.
"""
