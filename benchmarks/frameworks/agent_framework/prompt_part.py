import asyncio
from datetime import date
from typing import Any

from agent_framework import Agent, ContextProvider
from agent_framework.openai import OpenAIChatCompletionClient


class Today(ContextProvider):
    async def before_run(self, *, context: Any, **rest: Any) -> None:
        context.extend_instructions(self.source_id, f"Today is {date.today():%A}.")


client = OpenAIChatCompletionClient("gpt-5-mini")
planner = Agent(client, "You plan meetings.", context_providers=[Today("today")])
print(asyncio.run(planner.run("Which day is in a week?")))
