"""A network in a Python program: `Network` and its answers.

It composes in one process what `hubbub up` starts in several: hub, store, mods and agents. It can
import everything except `cli`, `testing` and `lab`.
"""
