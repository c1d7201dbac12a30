from datetime import date

from crewai import Agent

planner = Agent(
    role="planner",
    goal="Plan meetings.",
    backstory=f"You plan meetings. Today is {date.today():%A}.",
    llm="gpt-5-mini",
)
print(planner.kickoff("Which day is in a week?").raw)
