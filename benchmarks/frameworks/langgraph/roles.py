from typing import Literal, TypedDict

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain.tools import tool
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel


class Route(BaseModel):
    to: Literal["planner", "answer"]


class Plan(BaseModel):
    steps: list[str]


class Verdict(BaseModel):
    score: int
    remark: str
    answer: str


class State(TypedDict, total=False):
    question: str
    steps: list[str]
    results: list[str]
    remark: str
    answer: str
    tries: int


@tool
def price(article: str) -> float:
    """Look up the price of an article, in euros."""
    return {"lamp": 24.5, "clock": 40.0}[article]


@tool
def add(amounts: list[float]) -> float:
    """Add amounts up."""
    return sum(amounts)


model = init_chat_model("openai:gpt-5-mini")
worker = create_agent(model, [price, add], system_prompt="You find out prices for the office.")


def work(text: str) -> str:
    return worker.invoke({"messages": [("user", text)]})["messages"][-1].text


def route(state: State) -> str:
    ask = "Does it take a plan, or can it be answered at once?"
    return model.with_structured_output(Route).invoke(f"{ask} {state['question']}").to


def answer(state: State) -> State:
    return {"answer": work(state["question"])}


def planner(state: State) -> State:
    ask = f"Say the steps. {state['question']} {state.get('remark', '')}"
    plan = model.with_structured_output(Plan).invoke(ask)
    return {"steps": plan.steps, "tries": state.get("tries", 0) + 1}


def executor(state: State) -> State:
    results: list[str] = []
    for step in state["steps"]:
        results.append(work(f"{step}\nSo far: {results}"))
    return {"results": results}


def judge(state: State) -> State:
    ask = "Judge the results from 1 to 5. If they are good, answer."
    told = f"{ask} {state['question']} {state['results']}"
    verdict = model.with_structured_output(Verdict).invoke(told)
    good = verdict.score >= 3 or state["tries"] == 3
    return {"remark": verdict.remark, "answer": verdict.answer if good else ""}


graph = StateGraph(State)
graph.add_node(answer)
graph.add_node(planner)
graph.add_node(executor)
graph.add_node(judge)
graph.add_conditional_edges(START, route)
graph.add_edge("planner", "executor")
graph.add_edge("executor", "judge")
graph.add_conditional_edges("judge", lambda state: END if state["answer"] else "planner")
graph.add_edge("answer", END)
question = "What do a lamp and a clock cost together?"
print(graph.compile().invoke({"question": question})["answer"])
