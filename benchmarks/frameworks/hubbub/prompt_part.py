from datetime import date

from hubbub import LlmAgent, Network, PromptContext


def instruction(context: PromptContext) -> str:
    return f"You plan meetings. Today is {date.today():%A}."


planner = LlmAgent("planner", model="gpt-5-mini", instruction=instruction)
print(Network(planner).ask_sync("planner", "Which day is in a week?"))
