from datetime import date

from agents import Agent, RunContextWrapper, Runner


def instructions(context: RunContextWrapper, agent: Agent) -> str:
    return f"You plan meetings. Today is {date.today():%A}."


planner = Agent(name="planner", model="gpt-5-mini", instructions=instructions)
print(Runner.run_sync(planner, "Which day is in a week?").final_output)
