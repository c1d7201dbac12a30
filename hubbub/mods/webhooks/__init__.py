"""The mod `webhooks`: what happens, told to other programs over HTTP.

mod         operations and hooks
settings    settings and templates
schemas     inputs and outputs
courier     signed requests, tried again
repository  deliveries that wait
"""
