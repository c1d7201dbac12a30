from pydantic import BaseModel
from pydantic_ai import Agent


class Refund(BaseModel):
    order: int
    cents: int


clerk = Agent("openai-chat:gpt-5-mini", instructions="You pay refunds.", output_type=list[Refund])
refunds = clerk.run_sync("Order 7: 19 euros. Order 8: 2.50.").output
print(sum(refund.cents for refund in refunds))
