"""A network in a Python program: `Network`, and what it answers.

It puts together what `hubbub up` starts in several processes (hub, store, mods, agents); nothing
here runs anything in a way of its own. It may use everything but `cli`, `testing` and `lab`.
"""
