"""Agents with several roles that plan together: router, planner, executor, reflector, and their
pipeline.
"""
