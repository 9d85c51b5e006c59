"""`kubesched serve`: the questions over HTTP, for programs, about a cluster that watches keep current. Read-only."""
