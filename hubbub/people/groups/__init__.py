"""What the commands of each group say differently from their operations: words, columns of lists,
views of answers, and what takes more than one call.

One module a group, with its table `COMMANDS`; it is imported when one of its commands is used.
Imports `people` without the chat, and the schemas of its own mod.
"""
