"""The queue, the attempts at pods and the event handlers: pods wait, are tried, are bound or fail, and back off.

Plain objects driven by events and a clock that is passed in: the same code runs on a live cluster and in virtual time.
"""
