import asyncio
from typing import Literal

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Route(BaseModel):
    to: Literal["plan", "answer"]


class Plan(BaseModel):
    steps: list[str]


class Verdict(BaseModel):
    score: int
    remark: str
    answer: str


@tool
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


client = OpenAIChatCompletionClient("gpt-5-mini")
router = Agent(
    client,
    "Does it take a plan, or can it be answered at once?",
    default_options={"response_format": Route},
)
planner = Agent(client, "Say the steps.", default_options={"response_format": Plan})
executor = Agent(client, "You find out prices for the office.", tools=[price, add])
judge = Agent(
    client,
    "Judge the results from 1 to 5. If they are good, answer.",
    default_options={"response_format": Verdict},
)


async def ask(question: str) -> str:
    if (await router.run(question)).value.to == "answer":
        return (await executor.run(question)).text
    remark = ""
    for _ in range(3):
        results: list[str] = []
        for step in (await planner.run(f"{question} {remark}")).value.steps:
            results.append((await executor.run(f"{step}\nSo far: {results}")).text)
        verdict = (await judge.run(f"{question}\n{results}")).value
        remark = verdict.remark
        if verdict.score >= 3:
            break
    return verdict.answer


print(asyncio.run(ask("What do a lamp and a clock cost together?")))
