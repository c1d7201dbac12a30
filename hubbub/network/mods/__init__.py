"""The mods of a network while it runs.

runtime     starts, stops and asks them; a service of the kernel
port        what a mod's host asks of the kernel
operations  their operations, guarded, and what these write
failures    what becomes of a failure
"""
