"""What the scripted model says in each task, to each framework, and what a program must print.

Questions and tools are the same everywhere; frameworks differ in how a model hands on work, gives a
typed value and ends.
"""

from __future__ import annotations

import json
from datetime import date

from pydantic import JsonValue

from hubbub.testing.model_script import (
    AnyAnswer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
    When,
)

__all__ = ["INPUT", "PRINTED", "script"]

TODAY = f"{date.today():%A}"
PRINTED = {
    "ask": "Grey water, wide sky.",
    "typed": "2150",
    "prompt_part": f"In a week it is {TODAY} again.",
    "retrieval": "Within three days.",
    "approval": "You get your 19 euros back.",
    "roles": "64.5 euros.",
}
"""What a program prints last."""
INPUT = "yes\n"
"""What a person types who is asked."""


def script(framework: str, task: str) -> Script:
    """What the model says."""
    end = _says(framework, PRINTED[task])
    match task:
        case "ask":
            return Script(answers=[end])
        case "typed":
            return Script(answers=[_value(framework, REFUNDS, "refunds")])
        case "prompt_part":
            return Script(rules=[ScriptRule(when=_when(system=f"Today is {TODAY}"), answer=end)])
        case "retrieval":
            found = ScriptRule(when=_when(tool_result="paid within three days"), answer=end)
            tool = "search_knowledge" if framework == "hubbub" else "search"
            return Script(rules=[found], answers=[_call(tool, query="refunds damaged goods")])
        case "approval":
            return _approval(framework, end)
        case "roles":
            return _roles(framework)
    raise ValueError(task)


REFUNDS: JsonValue = [{"order": 7, "cents": 1900}, {"order": 8, "cents": 250}]
STEPS: JsonValue = ["The price of a lamp", "The price of a clock", "Their sum"]


def _approval(framework: str, end: ScriptedAnswer) -> Script:
    task = "Pay 1900 cents back for order 7."
    paid = _when(tool_result="paid 1900 cents back for order 7")
    match framework:
        case "hubbub":
            hand_on = ScriptedCall(tool="delegate", arguments={"to": "payer", "task": task})
            first = ScriptedAnswer(calls=[hand_on, ScriptedCall(tool="finish")])
            done = ScriptedCall(tool="report", arguments={"request": "m2", "text": "It is paid."})
            report = ScriptedAnswer(calls=[done, ScriptedCall(tool="finish")])
        case "crewai":
            first = _call("delegate_work_to_coworker", task=task, context="", coworker="payer")
            report = ScriptedAnswer(text="It is paid.")
        case _:
            arguments = {"input": task} if framework == "openai_agents" else {"task": task}
            first, report = _call("ask_payer", **arguments), ScriptedAnswer(text="It is paid.")
    refund = _call("refund", order=7, cents=1900)
    return Script(rules=[ScriptRule(when=paid, answer=report)], answers=[first, refund, end])


def _roles(framework: str) -> Script:
    answer = PRINTED["roles"]
    if framework == "hubbub":
        steps: JsonValue = [
            {"id": 1, "goal": "lamp", "executor": "price", "arguments": {"article": "lamp"}},
            {"id": 2, "goal": "clock", "executor": "price", "arguments": {"article": "clock"}},
            {"id": 3, "goal": "sum", "executor": "add", "arguments": {"amounts": SUMMANDS}},
        ]
        scores: JsonValue = dict.fromkeys(("completeness", "correctness", "format"), 5)
        judged: dict[str, JsonValue] = {"scores": scores, "verdict": "accept", "reasoning": "ok"}
        return Script(
            answers=[
                _call("route", target="make_plan", confidence=0.9),
                _call("submit_plan", steps=steps),
                _call("judge", answer="$step_3_result euros.", **judged),
            ]
        )
    route = "planner" if framework == "langgraph" else "plan"
    verdict: JsonValue = {"score": 5, "remark": "", "answer": answer}
    work: list[AnyAnswer] = [
        *(_call("price", article="lamp"), ScriptedAnswer(text="24.5")),
        *(_call("price", article="clock"), ScriptedAnswer(text="40")),
        *(_call("add", amounts=[24.5, 40]), ScriptedAnswer(text="64.5")),
    ]
    first = [_value(framework, route, "to", "Route"), _value(framework, STEPS, "steps", "Plan")]
    return Script(answers=[*first, *work, _value(framework, verdict, "", "Verdict")])


SUMMANDS: JsonValue = ["$step_1_result", "$step_2_result"]


def _when(**conditions: str) -> When:
    return When.model_validate(conditions)


def _call(tool: str, **arguments: JsonValue) -> ScriptedAnswer:
    return ScriptedAnswer(calls=[ScriptedCall(tool=tool, arguments=arguments)])


def _says(framework: str, text: str) -> ScriptedAnswer:
    return _call("finish", message=text) if framework == "hubbub" else ScriptedAnswer(text=text)


def _value(framework: str, value: JsonValue, field: str, model: str = "") -> ScriptedAnswer:
    """A typed value: of what is no object frameworks make one, with a field of this name where the
    program must declare it."""
    if framework == "hubbub":
        return _call("finish", message=value)
    if framework in ("pydantic_ai", "openai_agents"):
        field = "response"
    told = value if isinstance(value, dict) else {field: value}
    return (
        _call("final_result", **told)
        if framework == "pydantic_ai"
        else ScriptedAnswer(text=json.dumps(told))
    )
