import asyncio
from pathlib import Path

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient


@tool
def search(query: str) -> list[str]:
    """Search the handbook for passages."""
    words = set(query.lower().split())
    texts = [path.read_text() for path in Path("handbook").rglob("*.md")]
    passages = [passage for text in texts for passage in text.split("\n## ")]
    return sorted(passages, key=lambda p: -len(words & set(p.lower().split())))[:3]


client = OpenAIChatCompletionClient("gpt-5-mini")
clerk = Agent(client, "You answer customers from the handbook.", tools=[search])
print(asyncio.run(clerk.run("How soon are refunds for damaged goods paid?")))
