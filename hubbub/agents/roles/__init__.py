"""Roles of models that plan together: router, planner, executor, reflector, and their pipeline."""
