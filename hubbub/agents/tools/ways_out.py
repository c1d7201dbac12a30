"""Tools that end or pause the work: finish, ask, decline, announce a plan.

They write to the thread that woke the agent, whatever other tools it has; `finish` does if it has a
message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm, ToolFailed
from hubbub.agents.tools.hub import Caller, refused
from hubbub.agents.tools.schema import without_titles, wrong_arguments
from hubbub.agents.turn.outbox import marks
from hubbub.errors import OperationError
from hubbub.field_docs import Documented
from hubbub.protocol.messages import Permission

__all__ = [
    "ASK_HUMAN",
    "CHECK",
    "DECLINE",
    "FINISH",
    "FORK",
    "REPLY",
    "SHOW_PLAN",
    "SILENT_FINISH",
    "WAIT_FOR",
    "Saying",
    "finishing",
    "replying",
    "ways_out",
]

FINISH, ASK_HUMAN, DECLINE = "finish", "ask_human", "decline"
SHOW_PLAN, FORK = "show_plan", "fork"
WAIT_FOR, CHECK = "wait_for", "check"
"""For helpers in the background (`hubbub.agents.fork`)."""
REPLY = "answer_asker"
"""The final answer of a role; not offered to models."""

Said = TypeVar("Said", bound=BaseModel)
Words = Annotated[str, Field(min_length=1)]


class _Arguments(Documented):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Question(_Arguments):
    question: Words
    """What you need to know, so that it can be understood without having seen your thoughts."""
    options: tuple[Words, ...] = ()
    """Answers to choose from, if there are some."""


class _Refusal(_Arguments):
    reason: Words
    """Why, in a sentence; the one who asked reads it."""


class _Plan(_Arguments):
    plan: Words
    """What you are going to do, step by step."""


class _End(_Arguments):
    message: str = ""
    """Your answer to whoever wrote to you, if it is not sent yet. Left out: nothing is said."""
    reason: str = ""
    """Why you are done, for the record."""


class _Reply(_Arguments):
    text: Words
    """What is said."""


class Saying(Generic[Said]):
    """A tool that sends one message to the thread that woke the agent."""

    permission: Permission = "write"
    confirm: Confirm = False
    idempotent = True  # its message has a cid
    ordered = True
    speaks = True
    timeout = None

    def __init__(
        self, spec: ToolSpec, model: type[Said], say: Callable[[Said], str], told: str, to: Caller
    ):
        """`say` makes the message from the arguments; `told` is the result for the model."""
        self.name, self.spec, self._model = spec.name, spec, model
        self._say, self._told, self._caller = say, told, to

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Send it. Raises `ToolFailed` for invalid arguments and when the hub refuses."""
        try:
            said = self._model.model_validate(arguments)
        except ValidationError as exc:
            raise ToolFailed(wrong_arguments(exc), error="invalid_arguments", retry=True) from exc
        text = self._say(said)
        if not text.strip():
            return self._told  # only `finish` may be silent
        try:
            await self._caller.call(
                "send_text_message",
                cid=site.cid,
                cause=site.turn,
                to=site.thread_id,
                text=text,
                **marks(site.outside),
            )
        except OperationError as exc:
            raise refused(exc) from exc
        return self._told


def ways_out(caller: Caller) -> tuple[Saying[_Question], Saying[_Refusal], Saying[_Plan]]:
    """`ask_human`, `decline` and `show_plan`, sending through `caller`."""
    ask = _spec(
        ASK_HUMAN,
        "Ask whoever wrote to you, when you cannot go on without knowing something. The question "
        "is sent; the answer comes as a new message, later.",
        _Question,
    )
    decline = _spec(
        DECLINE, "Tell whoever wrote to you that you will not do it, and why.", _Refusal
    )
    plan = _spec(SHOW_PLAN, "Tell whoever wrote to you what you are about to do.", _Plan)
    return (
        Saying(ask, _Question, _question, _ASKED, caller),
        Saying(
            decline, _Refusal, lambda refusal: f"I decline: {refusal.reason}", _DECLINED, caller
        ),
        Saying(plan, _Plan, lambda said: said.plan, _SHOWN, caller),
    )


def finishing(caller: Caller) -> Saying[_End]:
    """`finish`, which sends its message, if it has one, to the thread that woke the agent."""
    spec = _spec(FINISH, "End this turn, with an answer or without one.", _End)
    return Saying(spec, _End, lambda end: end.message, "finished", caller)


SILENT_FINISH = ToolSpec(
    FINISH,
    "End this turn: you have done what there was to do, or there is nothing to do.",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "In a few words, why you are done."}
        },
        "required": ["reason"],
        "additionalProperties": False,
    },
)
"""`finish` without a message, for helpers and roles."""


def replying(caller: Caller) -> Saying[_Reply]:
    """The tool with which roles answer in the thread that woke the agent."""
    spec = _spec(REPLY, "Answer whoever wrote to you.", _Reply)
    return Saying(spec, _Reply, lambda said: said.text, "sent", caller)


_ASKED = (
    "the question is sent; the answer will come as a new message in a later turn. Do what can be "
    "done without it, then call finish"
)
_DECLINED = "the refusal is sent; call finish if nothing else is to be done"
_SHOWN = "the plan is sent; go on with it"


def _question(asked: _Question) -> str:
    """The question with its options numbered."""
    options = (f"{n}. {option}" for n, option in enumerate(asked.options, 1))
    return "\n".join((asked.question, *options))


@cache  # the schema is the slowest part of an agent's start
def _spec(name: str, description: str, model: type[BaseModel]) -> ToolSpec:
    return ToolSpec(name, description, without_titles(model.model_json_schema()))
