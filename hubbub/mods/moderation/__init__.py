"""The mod `moderation`: rules for what is said, and secrets that never enter the log.

mod      the hook
rules    settings and rules
text     forms of a text, patterns of users, links
secrets  keys, tokens and passwords
"""
