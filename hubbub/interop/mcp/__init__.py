"""The network as an MCP server: an MCP host joins as a participant.

participant  a participant's incoming messages and its calls
server       its tools and resources, and the server on stdin and stdout (`hubbub mcp`)
http         the server on the hub's port
"""
