"""Coding agents as agents of the network, by the Agent Client Protocol (ACP).

The network is the protocol's client: it starts the agent's program, gives it a prompt for each
turn, records what the program says that it does, and asks people what the program asks.

program     the process, its connection and its sessions
progress    from the program's updates to the steps of a turn
permission  from what it asks permission for to an approval of the hub
prompting   one prompt under way, and who waits in it
network     the network's tools, which the program has as those of an MCP server
sessions    which session a turn works in, also after restarts
turn        what a turn decides: prompt, wait for a person, answer, end
agent       the agent: from its YAML to its turns

The other way round, an agent of the network is the agent of an editor:

editor      `hubbub acp`: sessions, prompts and permissions of an editor
"""
