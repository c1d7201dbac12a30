from agents import Agent, Runner
from pydantic import BaseModel


class Refund(BaseModel):
    order: int
    cents: int


clerk = Agent(
    name="clerk", model="gpt-5-mini", instructions="You pay refunds.", output_type=list[Refund]
)
refunds = Runner.run_sync(clerk, "Order 7: 19 euros. Order 8: 2.50.").final_output
print(sum(refund.cents for refund in refunds))
