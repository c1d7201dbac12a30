import asyncio

from agent_framework import Agent, Message, tool
from agent_framework.openai import OpenAIChatCompletionClient


@tool(approval_mode="always_require")
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    return f"paid {cents} cents back for order {order}"


@tool
async def ask_payer(task: str) -> str:
    """Give the payer a task."""
    session = payer.create_session()
    result = await payer.run(task, session=session)
    while requests := result.user_input_requests:
        said = []
        for request in requests:
            call = request.function_call
            yes = input(f"{call.name} {call.arguments}? ") == "yes"
            said.append(request.to_function_approval_response(yes))
        result = await payer.run(Message("user", said), session=session)
    return result.text


client = OpenAIChatCompletionClient("gpt-5-mini")
payer = Agent(client, "You pay refunds.", tools=[refund])
desk = Agent(client, "You answer customers.", tools=[ask_payer])
print(asyncio.run(desk.run("Order 7 came broken. I want my 19 euros back.")))
