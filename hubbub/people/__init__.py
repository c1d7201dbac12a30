"""What a person's client is made of, in a shell and in a chat: the network as one person knows it
(`state`), and commands made of operations (`commands`, `groups`). `chat` is the client by lines.
Imports the client, the protocol and the models of mods; nothing of the program around it."""
