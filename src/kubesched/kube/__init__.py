"""The API server seen from here: connection settings, credentials, transport, reflectors, leases and events.

Knows objects only as records of `api`, and nothing of scheduling.
"""
