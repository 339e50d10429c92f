"""`lore mcp`: the memory as an MCP server on stdio, a client of the daemon like any other."""
