"""A pipeline in the hands of a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pydantic import JsonValue

from hubbub.agents.models.base import Answer, CallRequest
from hubbub.agents.roles.pipeline import (
    Consult,
    Executors,
    Kind,
    Pipeline,
    Rules,
)
from hubbub.agents.roles.work import Bounds
from hubbub.agents.turn.loop import Answered, CallResult, Command, End, Record, RunTools
from hubbub.protocol.turns import Steering, Step

__all__ = ["EXECUTORS", "TWO", "Driver", "answer", "judge", "route"]

EXECUTORS = Executors({"look_up": {}, "add": {}}, ["ann"])
TWO: list[JsonValue] = [
    {"id": 1, "goal": "a", "executor": "look_up", "arguments": {"q": "x"}},
    {"id": 2, "goal": "b", "executor": "ann"},
    {"id": 3, "goal": "c", "executor": "add", "arguments": {"n": "$step_1_result"},
     "depends_on": [2]},
]  # fmt: skip


def answer(name: str, **arguments: JsonValue) -> Answer:
    return Answer(calls=(CallRequest("", name, json.dumps(arguments)),))


def route(target: str, confidence: float = 1.0, **more: JsonValue) -> Answer:
    return answer("route", target=target, confidence=confidence, **more)


def judge(verdict: str, **more: JsonValue) -> Answer:
    return answer("judge", verdict=verdict, score=3, reason="so", **more)


class Driver:
    """A pipeline, and what it has commanded last."""

    def __init__(
        self,
        kind: Kind = "pipeline",
        steps: Sequence[Step] = (),
        earlier: Sequence[Step] = (),
        bounds: Bounds | None = None,
        *,
        may_finish: bool = False,
        max_tokens: int | None = None,
        executors: Executors = EXECUTORS,
    ):
        rules = Rules(kind, bounds or Bounds(), may_finish, max_tokens)
        self.pipeline = Pipeline(rules, executors, steps, earlier)
        self.recorded: dict[int, Step] = {step.n: step for step in steps}
        self.commands: list[Command] = []
        self._take(self.pipeline.start())

    def _take(self, commands: list[Command]) -> None:
        self.recorded |= {c.step.n: c.step for c in commands if isinstance(c, Record)}
        self.commands = [c for c in commands if not isinstance(c, Record)]

    @property
    def steps(self) -> list[Step]:
        return [self.recorded[n] for n in sorted(self.recorded)]

    @property
    def asks(self) -> list[str]:
        return [c.role for c in self.commands if isinstance(c, Consult)]

    @property
    def consult(self) -> Consult:
        (consult,) = self.commands
        assert isinstance(consult, Consult)
        return consult

    def says(self, *answers: Answer, steered: Sequence[Steering] = ()) -> None:
        asked = [c for c in self.commands if isinstance(c, Consult)]
        consults = [c.hearing(steered) for c in asked]
        assert len(consults) == len(answers)
        pairs = zip(consults, answers, strict=True)
        self._take(self.pipeline.answered([Answered(c, a) for c, a in pairs]))

    @property
    def runs(self) -> RunTools:
        (run,) = self.commands
        assert isinstance(run, RunTools)
        return run

    @property
    def called(self) -> list[tuple[str, JsonValue]]:
        return [(call.name, call.arguments) for call in self.runs.calls]

    def ran(self, result: Callable[[str], tuple[str, str | None]] = lambda n: ("ok", None)) -> None:
        results = [CallResult(c.id, *result(c.name)) for c in self.runs.calls]
        self._take(self.pipeline.ran(results))

    @property
    def end(self) -> End:
        (end,) = self.commands
        assert isinstance(end, End)
        return end
