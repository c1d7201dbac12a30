"""The mod `webhooks`: what happens, told to other programs over HTTP.

mod       operations and hooks
schemas   inputs and outputs
settings  settings, templates, signatures
courier   deliveries that wait, and signed requests, tried again
"""
