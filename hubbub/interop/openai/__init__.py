"""A network as an endpoint of the OpenAI API: chat pages and SDKs talk to its agents.

door      who may ask, and what is answered
http      one request on a connection, answered whole or as server-sent events
requests  what a request says, in either of the two APIs
replies   how an answer is told in them
"""
