"""The mod `transcript`: what was said, as a file, and back.

mod       operations
schemas   inputs and outputs
formats   JSON lines, Markdown, a page
importer  lines as messages of this network
"""
