"""The OpenAI API: chat pages and SDKs talk to the network's agents.

door      authentication, routing, whole and streamed responses
requests  parses requests of both APIs: chat completions and responses
replies   encodes answers for both APIs
"""
