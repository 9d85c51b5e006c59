"""Volumes, the claims that ask for them, and what drivers say of themselves."""
