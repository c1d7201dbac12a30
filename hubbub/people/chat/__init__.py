"""The chat, line by line.

`conversation` connects a client, what is typed (`slash`, `completion`) and a `console`: a pipe's,
or a `terminal`'s. `session` is the chat's state, which turns what happens into lines; a
console makes styled text of them. Imports the rest of `people`; only `terminal` imports
prompt_toolkit.
"""
