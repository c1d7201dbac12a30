"""The mod `transcript`: exports messages to files, and imports them.

mod      operations; conversion of lines to messages of this network
schemas  inputs and outputs
formats  JSON lines, Markdown, HTML
"""
