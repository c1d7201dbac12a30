"""Coding agents as agents of the network, over the Agent Client Protocol (ACP).

The network is the protocol's client: it starts the agent's program, prompts it once per turn,
records its updates, and passes its permission requests to people.

program     the process, its connection and its sessions
progress    turns the program's updates into steps
permission  turns its permission requests into approvals of the hub
prompting   one running prompt, and the approvals it waits for
network     the network's tools, served to the program over MCP
relay       the MCP server that the program starts
sessions    the session of each thread, which survives restarts
turn        the state machine of a turn: prompt, wait for a person, answer, end
agent       the agent: from its YAML to its turns

In the other direction, an editor uses an agent of the network:

editor      `hubbub acp`: sessions, prompts and permissions of an editor
"""
