from typing import Literal

from agents import Agent, Runner, function_tool
from pydantic import BaseModel


class Verdict(BaseModel):
    score: int
    remark: str
    answer: str


@function_tool
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@function_tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


router = Agent(
    name="router",
    model="gpt-5-mini",
    instructions="Does it take a plan, or can it be answered at once?",
    output_type=Literal["plan", "answer"],
)
planner = Agent(
    name="planner", model="gpt-5-mini", instructions="Say the steps.", output_type=list[str]
)
executor = Agent(
    name="executor",
    model="gpt-5-mini",
    instructions="You find out prices for the office.",
    tools=[price, add],
)
judge = Agent(
    name="judge",
    model="gpt-5-mini",
    instructions="Judge the results from 1 to 5. If they are good, answer.",
    output_type=Verdict,
)
question = "What do a lamp and a clock cost together?"
if Runner.run_sync(router, question).final_output == "answer":
    print(Runner.run_sync(executor, question).final_output)
else:
    remark = ""
    for _ in range(3):
        results: list[str] = []
        for step in Runner.run_sync(planner, f"{question} {remark}").final_output:
            done = Runner.run_sync(executor, f"{step}\nSo far: {results}")
            results.append(done.final_output)
        verdict = Runner.run_sync(judge, f"{question}\n{results}").final_output
        remark = verdict.remark
        if verdict.score >= 3:
            break
    print(verdict.answer)
