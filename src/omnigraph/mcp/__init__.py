"""The MCP server: a graph as tools, resources and prompts for language models.

It calls the handle, like the command line and the HTTP server. It must never decide what an
operation does; what it owns is how an answer is bounded and how a failure is told to a model.
"""
