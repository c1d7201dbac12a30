from datetime import date

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt


@dynamic_prompt
def instructions(request: ModelRequest) -> str:
    return f"You plan meetings. Today is {date.today():%A}."


planner = create_agent("openai:gpt-5-mini", middleware=[instructions])
result = planner.invoke({"messages": [("user", "Which day is in a week?")]})
print(result["messages"][-1].text)
