import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

poet = Agent(OpenAIChatCompletionClient("gpt-5-mini"), "You write short texts.")
print(asyncio.run(poet.run("A line about the sea, please.")))
