"""Prompts: the system message, the conversation, and the budget of the context window.

builder, components, system, context  the system message, built of components
render, escape                        the conversation (`conversation.j2`)
budget, compression, summary, tokens  what fits the model's window
scratchpad                            a model's thoughts, which are not its answer
versions, files                       templates with versions, in files
lint, lint_subject, expectations      what is wrong with a prompt, or with an answer

Pure: it does no I/O but to read the files that a config names.
"""
