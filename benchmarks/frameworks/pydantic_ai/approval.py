from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls


def approve(ctx: RunContext, requests: DeferredToolRequests) -> DeferredToolResults:
    said = {c.tool_call_id: input(f"{c.tool_name} {c.args}? ") == "yes" for c in requests.approvals}
    return DeferredToolResults(approvals=said)


asking = HandleDeferredToolCalls(handler=approve)
desk = Agent("openai-chat:gpt-5-mini", instructions="You answer customers.")
payer = Agent("openai-chat:gpt-5-mini", instructions="You pay refunds.", capabilities=[asking])


@payer.tool_plain(requires_approval=True)
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    return f"paid {cents} cents back for order {order}"


@desk.tool_plain
async def ask_payer(task: str) -> str:
    """Give the payer a task."""
    return (await payer.run(task)).output


print(desk.run_sync("Order 7 came broken. I want my 19 euros back.").output)
