"""Recordings of a scheduler at work, and their replay."""
