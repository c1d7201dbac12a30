"""The line-based chat.

`conversation` connects a client, typed input (`slash`, `completion`) and a `console`, for a pipe or
a `terminal`. `session` is the chat's state, which turns events into lines; a console renders them
as styled text. Imports the rest of `people`; only `terminal` imports prompt_toolkit.
"""
