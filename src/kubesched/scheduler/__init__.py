"""The part that lives: pods wait, get their turn, are bound or fail, back off, and are woken by the right event.

Plain objects driven by events and a clock that is passed in: the same code runs on a live cluster and in virtual time.
"""
