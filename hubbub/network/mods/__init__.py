"""The mods of a network while it runs.

runtime     starts, stops and asks them; a service of the kernel
host        the hub as one mod sees it
operations  their operations, guarded, and what these write
posting     messages that they post or bring back from a transcript
messages    messages as they are shown to them while they enter the log
alarms      when they want to be called
failures    what becomes of a failure
"""
