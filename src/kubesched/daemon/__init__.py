"""`kubesched run`: all parts around the scheduler. Flags and options, logging, metrics, and the HTTPS endpoints.

Nothing here decides about pods; the composition root puts these parts together with a client and a scheduler.
"""
