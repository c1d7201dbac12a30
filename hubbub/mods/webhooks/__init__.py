"""The mod `webhooks`: what happens in the network, told to other programs over HTTP."""
