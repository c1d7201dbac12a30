"""Tools of MCP servers (Model Context Protocol), through the optional package `mcp`."""
