from pydantic import BaseModel

from hubbub import LlmAgent, Network


class Refund(BaseModel):
    order: int
    cents: int


clerk = LlmAgent("clerk", model="gpt-5-mini", instruction="You pay refunds.")
refunds = Network(clerk).ask_sync("clerk", "Order 7: 19 euros. Order 8: 2.50.", output=list[Refund])
print(sum(refund.cents for refund in refunds))
