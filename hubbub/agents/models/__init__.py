"""Models: the interface that the loop uses, and adapters to endpoints.

base                   requests and completions; the interface `ChatModel`
openai, requests       endpoints with the OpenAI API, and the requests sent to them
responses              parses their responses, complete or streamed
portable_schema        reduces schemas to what all engines accept
providers, embeddings  opens the model of a config; turns texts into vectors
"""
