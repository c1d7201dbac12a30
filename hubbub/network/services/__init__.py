"""The capabilities of a hub, one service each, with the operations they declare.

    messages, threads, channels, participants, receipts, memory
    turns, budgets, requests, trials        agents' work and its cost
    approvals, stops, takeovers             control by people
    admin, launcher, agent_editor           control by owners and operators

A service imports the kernel and the services it uses; none imports `hubbub.network.hub`.
"""
