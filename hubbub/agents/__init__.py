"""Agents: inbox, prompt, loop, tools, and what runs them on a client."""
