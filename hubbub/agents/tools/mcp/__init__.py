"""Tools of MCP servers (Model Context Protocol), through the package `mcp`, which is an extra."""
