"""The capabilities of a hub, a service each, and the operations they declare.

    messages, threads, channels, participants, read markers, receipts, interactions, memory
    turns, budgets, requests, trials       what agents do, and what it costs
    approvals, stops, takeovers, down      people in charge
    admin, mods

A service imports the kernel and services that it uses; none imports `hubbub.network.hub`.
"""
