from typing import Literal

from crewai import Agent
from crewai.tools import tool
from pydantic import BaseModel


class Route(BaseModel):
    to: Literal["plan", "answer"]


class Plan(BaseModel):
    steps: list[str]


class Verdict(BaseModel):
    score: int
    remark: str
    answer: str


@tool
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


def agent(role: str, goal: str, **more: object) -> Agent:
    return Agent(role=role, goal=goal, backstory="You buy.", llm="gpt-5-mini", **more)


router = agent("router", "Does it take a plan, or can it be answered at once?")
planner = agent("planner", "Say the steps.")
executor = agent("executor", "You find out prices for the office.", tools=[price, add])
judge = agent("judge", "Judge the results from 1 to 5. If they are good, answer.")
question = "What do a lamp and a clock cost together?"
if router.kickoff(question, response_format=Route).pydantic.to == "answer":
    print(executor.kickoff(question).raw)
else:
    remark = ""
    for _ in range(3):
        results: list[str] = []
        plan = planner.kickoff(f"{question} {remark}", response_format=Plan).pydantic
        for step in plan.steps:
            results.append(executor.kickoff(f"{step}\nSo far: {results}").raw)
        verdict = judge.kickoff(f"{question}\n{results}", response_format=Verdict).pydantic
        remark = verdict.remark
        if verdict.score >= 3:
            break
    print(verdict.answer)
