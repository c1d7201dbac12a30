import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from pydantic import BaseModel


class Refund(BaseModel):
    order: int
    cents: int


class Refunds(BaseModel):
    refunds: list[Refund]


clerk = Agent(OpenAIChatCompletionClient("gpt-5-mini"), "You pay refunds.")
result = asyncio.run(
    clerk.run("Order 7: 19 euros. Order 8: 2.50.", options={"response_format": Refunds})
)
print(sum(refund.cents for refund in result.value.refunds))
