from crewai import Agent
from pydantic import BaseModel


class Refund(BaseModel):
    order: int
    cents: int


class Refunds(BaseModel):
    refunds: list[Refund]


clerk = Agent(role="clerk", goal="Refund.", backstory="You pay refunds.", llm="gpt-5-mini")
result = clerk.kickoff("Order 7: 19 euros. Order 8: 2.50.", response_format=Refunds).pydantic
print(sum(refund.cents for refund in result.refunds))
