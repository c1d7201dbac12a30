"""A network as an MCP server: any MCP host joins as a participant.

participant  what one participant hears, and how it answers
server       the tools and resources of a participant
stdio        `hubbub mcp`: the server of one host, on stdin and stdout
hosts        what to paste into a host's config
"""
