"""Shared by every HTTP server here: listening, TLS, access, and errors as documents."""
