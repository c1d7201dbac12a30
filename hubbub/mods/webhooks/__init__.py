"""The mod `webhooks`: sends events to other programs over HTTP.

mod       operations and hooks
schemas   inputs and outputs
settings  settings, templates, signatures
courier   stored deliveries, signed requests and retries
"""
