"""The mods of a network while it runs.

runtime     starts, stops and asks them; a service of the kernel
port        what a mod's host asks of the kernel
operations  their operations, guarded, and what these write
posting     messages of theirs on their way into the log
messages    messages as they are shown to them while they enter the log
alarms      when they want to be called
failures    what becomes of a failure
"""
