"""The mod `moderation`: rules for messages, and removal of secrets before they enter the log.

mod      the hook
rules    settings and rules
text     normalization, user-defined patterns, links
secrets  keys, tokens and passwords
"""
