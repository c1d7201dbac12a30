"""What the commands of each group say differently from their operations: words, columns of lists,
views of answers, and what takes more than one call.

One module a group, but for `control`, which has several; each with its table `COMMANDS`. It is
imported when one of its commands is used.
Imports `people` without the chat, and the schemas of its own mod.
"""
