"""The mod `transcript`: what was said, as a file, and back.

mod      operations; lines as messages of this network
schemas  inputs and outputs
formats  JSON lines, Markdown, a page
"""
