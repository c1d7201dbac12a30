from agents import Agent, Runner, function_tool


@function_tool(needs_approval=True)
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    return f"paid {cents} cents back for order {order}"


payer = Agent(
    name="payer", model="gpt-5-mini", instructions="You pay refunds.", tools=[refund]
).as_tool("ask_payer", "Give the payer a task.")
desk = Agent(name="desk", model="gpt-5-mini", instructions="You answer customers.", tools=[payer])
result = Runner.run_sync(desk, "Order 7 came broken. I want my 19 euros back.")
while result.interruptions:
    state = result.to_state()
    for call in result.interruptions:
        if input(f"{call.name} {call.arguments}? ") == "yes":
            state.approve(call)
        else:
            state.reject(call)
    result = Runner.run_sync(desk, state)
print(result.final_output)
