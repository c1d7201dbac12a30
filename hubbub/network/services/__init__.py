"""The capabilities of a hub, a service each, and the operations they declare.

    messages, threads, channels, participants, receipts, memory
    turns, budgets, requests, trials        what agents do, and what it costs
    approvals, stops, takeovers             people in charge
    admin, launcher, agent_editor           owners, and who runs the network

A service imports the kernel and services that it uses; none imports `hubbub.network.hub`.
"""
