"""Agents with roles that plan together: router, planner, executor, reflector.

pipeline, state  which role is asked next: a state machine, pure
plan             what roles answer, checked
context          what each of them reads
backend          takes turns by them
"""
