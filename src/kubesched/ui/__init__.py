"""The web page: what a scheduler sees, waits for and decides, to look at and to try things in.

`sources` are the clusters it can look at, `model` turns them into what is shown, `server` answers the page in `static`.
"""
