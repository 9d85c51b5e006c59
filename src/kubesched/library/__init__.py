"""`import kubesched`: a cluster from anywhere, the questions as methods, and answers as dicts, frames and pages."""
