from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt


@tool
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    if interrupt(f"refund {order} {cents}") != "yes":
        return "refused"
    return f"paid {cents} cents back for order {order}"


@tool
def ask_payer(task: str) -> str:
    """Give the payer a task."""
    return payer.invoke({"messages": [("user", task)]})["messages"][-1].text


payer = create_agent("openai:gpt-5-mini", [refund], system_prompt="You pay refunds.")
desk = create_agent(
    "openai:gpt-5-mini",
    [ask_payer],
    system_prompt="You answer customers.",
    checkpointer=InMemorySaver(),
)
thread = {"configurable": {"thread_id": "1"}}
question = "Order 7 came broken. I want my 19 euros back."
result = desk.invoke({"messages": [("user", question)]}, thread)
while "__interrupt__" in result:
    answer = input(f"{result['__interrupt__'][0].value}? ")
    result = desk.invoke(Command(resume=answer), thread)
print(result["messages"][-1].text)
