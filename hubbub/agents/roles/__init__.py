"""Agents with roles that plan together: router, planner, executor, reflector; their pipeline."""
