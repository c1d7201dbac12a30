from datetime import date

from pydantic_ai import Agent


def instructions() -> str:
    return f"You plan meetings. Today is {date.today():%A}."


planner = Agent("openai-chat:gpt-5-mini", instructions=instructions)
print(planner.run_sync("Which day is in a week?").output)
