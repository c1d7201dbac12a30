from pydantic_ai import Agent

poet = Agent("openai-chat:gpt-5-mini", instructions="You write short texts.")
print(poet.run_sync("A line about the sea, please.").output)
