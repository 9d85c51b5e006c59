"""`kubesched mcp`: the questions as tools for agents, by the Model Context Protocol. Read-only and bounded."""
