"""The tools of the MCP server, one module per subject."""
