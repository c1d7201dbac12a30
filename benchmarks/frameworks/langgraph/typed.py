from langchain.agents import create_agent
from pydantic import BaseModel


class Refund(BaseModel):
    order: int
    cents: int


class Refunds(BaseModel):
    refunds: list[Refund]


clerk = create_agent("openai:gpt-5-mini", system_prompt="You pay refunds.", response_format=Refunds)
result = clerk.invoke({"messages": [("user", "Order 7: 19 euros. Order 8: 2.50.")]})
print(sum(refund.cents for refund in result["structured_response"].refunds))
