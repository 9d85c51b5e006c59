"""The API over HTTP: paths, content types, lists and watches, limits, tokens, TLS and faults on demand."""
