"""Pod groups: one attempt at all pending pods of a group, all or nothing, and the condition of the group."""
