"""What a person's client is made of, in a shell and in a chat.

`state` is the network as one person knows it (`oversight`, `notices`,
`reactions`), `commands` the table of commands that operations make (`parameters`, `groups`),
`client` calls them, `answers` waits for what comes of a message, `shown`, `text`, `figures` and
`messages` say how things read. `chat` is the client by lines. Imports the client, the protocol and
the schemas of mods; nothing of the program around it.
"""
