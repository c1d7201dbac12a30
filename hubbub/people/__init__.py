"""The parts of a person's client, for the shell and the chat.

`state` is one person's view of the network (`oversight`, `notices`), `commands` the table of
commands generated from operations (`parameters`, `groups`), `client` calls them, `answers` waits
for answers to a message, and `shown`, `text`, `figures` and `messages` format output. `chat` is the
line-based client. Imports the client, the protocol and the schemas of mods, but not the program
around it.
"""
