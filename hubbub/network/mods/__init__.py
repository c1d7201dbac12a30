"""The mods of a running network.

runtime     starts, stops and calls them; a service of the kernel
port        the kernel as a mod's host sees it
operations  their operations, guarded, and the writes of these
failures    counts and reports their failures
"""
