"""The full-screen terminal client: `hubbub chat --full`. Its parts are imported one by one.

Pure parts: state, outbox, delivery, groups, timeline, keys, commands, markdown, draw, about, turn.
engine joins them to a client; the other modules are the widgets around them (textual, an extra).
"""
