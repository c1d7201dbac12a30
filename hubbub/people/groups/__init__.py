"""Where the commands of each group differ from their operations: names, columns of lists, views of
answers, and commands that make several calls.

One module per group, except `control`, which covers several; each has a table `COMMANDS` and is
imported when one of its commands is used. Imports `people` without the chat, and the schemas of its
own mod.
"""
