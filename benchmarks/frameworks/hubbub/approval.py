from hubbub import ApprovalRequest, LlmAgent, Network, tool


@tool(permission="write", confirm=True)
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    return f"paid {cents} cents back for order {order}"


def approve(call: ApprovalRequest) -> bool:
    return input(f"{call.tool} {call.arguments}? ") == "yes"


desk = LlmAgent("desk", model="gpt-5-mini", instruction="You serve customers; ask payer to refund.")
payer = LlmAgent("payer", model="gpt-5-mini", instruction="You pay refunds.", tools=[refund])
net = Network(desk, payer, approve=approve)
print(net.ask_sync("desk", "Order 7 came broken. I want my 19 euros back."))
