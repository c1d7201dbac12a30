"""Models: the interface that the loop uses, and adapters to endpoints.

base                              what is asked, what is answered, `ChatModel`
openai, requests                  endpoints with the OpenAI API, and the requests that they get
responses                         what they answer, whole or in pieces
portable_schema                   schemas that all of them accept
providers, embeddings             opens the model of a config; texts as vectors
"""
