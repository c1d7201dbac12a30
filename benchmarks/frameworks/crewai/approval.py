from crewai import Agent, Crew, Task
from crewai.hooks import before_tool_call
from crewai.hooks.tool_hooks import ToolCallHookContext
from crewai.tools import tool


@tool
def refund(order: int, cents: int) -> str:
    """Pay money back for an order."""
    return f"paid {cents} cents back for order {order}"


@before_tool_call(tools=["refund"])
def approve(call: ToolCallHookContext) -> bool:
    return input(f"{call.tool_name} {call.tool_input}? ") == "yes"


payer = Agent(
    role="payer",
    goal="Pay refunds.",
    backstory="You pay refunds.",
    llm="gpt-5-mini",
    tools=[refund],
)
desk = Agent(
    role="desk",
    goal="Answer customers.",
    backstory="You answer customers.",
    llm="gpt-5-mini",
    allow_delegation=True,
)
task = Task(
    description="Order 7 came broken. I want my 19 euros back.",
    expected_output="An answer to the customer.",
    agent=desk,
)
print(Crew(agents=[desk, payer], tasks=[task]).kickoff().raw)
