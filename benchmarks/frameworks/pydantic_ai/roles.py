from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent


class Verdict(BaseModel):
    score: int
    remark: str
    answer: str


router = Agent(
    "openai-chat:gpt-5-mini",
    instructions="Does it take a plan, or can it be answered at once?",
    output_type=Literal["plan", "answer"],
)
planner = Agent("openai-chat:gpt-5-mini", instructions="Say the steps.", output_type=list[str])
executor = Agent("openai-chat:gpt-5-mini", instructions="You find out prices for the office.")
judge = Agent(
    "openai-chat:gpt-5-mini",
    instructions="Judge the results from 1 to 5. If they are good, answer.",
    output_type=Verdict,
)


@executor.tool_plain
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@executor.tool_plain
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


question = "What do a lamp and a clock cost together?"
if router.run_sync(question).output == "answer":
    print(executor.run_sync(question).output)
else:
    remark = ""
    for _ in range(3):
        results: list[str] = []
        for step in planner.run_sync(f"{question} {remark}").output:
            results.append(executor.run_sync(f"{step}\nSo far: {results}").output)
        verdict = judge.run_sync(f"{question}\n{results}").output
        remark = verdict.remark
        if verdict.score >= 3:
            break
    print(verdict.answer)
