from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel

from hubbub.mods.operation import Calling, operation
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Done, Input, SendResult


class Args(Input):
    """Has no required field."""

    size: int = 1
    """How large."""


@operation()
def measure(call: Calling, args: Args) -> Done:
    """Measure
    something.

    This is for people who read the code."""
    return Done(done=args.size > 0)


@operation(permission="write", tool=False, idempotent=True, output=SendResult, name="speak")
async def _speak(call: Calling, args: Args) -> Draft:
    """Say it."""
    return Draft(call.participant, call.kind, "broadcast", "broadcast", "it")


class Finding(BaseModel):
    place: str
    line: int | None = None


class Findings(BaseModel):
    first: Finding | None
    all: tuple[Finding, ...]


def test_core_operations_are_described_without_building_a_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(*args: object, **more: object) -> None:
        raise AssertionError("schema built")

    monkeypatch.setattr(BaseModel, "model_json_schema", build)
    for each in CORE_OPERATIONS:
        assert each.info().input_schema["type"] == "object"

    class Own(Args):
        """Belongs to another mod."""

    with pytest.raises(AssertionError, match="schema built"):
        replace(measure, input=Own).info()


def test_optional_fields_of_an_output_are_not_required_by_its_schema() -> None:
    @operation()
    def look(call: Calling, args: Args) -> Findings:
        """Look for something."""
        return Findings(first=None, all=())

    schema = look.info().output_schema
    assert schema["required"] == ["all"]
    assert schema["$defs"]["Finding"]["required"] == ["place"]  # type: ignore[index,call-overload]


def test_explicit_arguments_override_the_defaults() -> None:
    assert (_speak.name, _speak.permission, _speak.output) == ("speak", "write", SendResult)
    assert (_speak.is_async, measure.is_async) == (True, False)
    assert (_speak.tool, _speak.idempotent) == (False, True)


def test_a_handler_without_a_docstring_is_refused_at_import() -> None:
    with pytest.raises(TypeError, match="docstring"):

        @operation()
        def silent(call: Calling, args: Args) -> Done:
            return Done()


def test_a_handler_without_an_input_or_an_output_is_refused_at_import() -> None:
    with pytest.raises(TypeError, match="Input"):

        @operation()
        def bare(call: Calling) -> Done:
            """Do it."""
            return Done()

    with pytest.raises(TypeError, match="output"):

        @operation()
        def nothing(call: Calling, args: Args) -> None:
            """Do it."""


@pytest.mark.behaviour("P-23")
def test_core_operations_cover_the_protocol_and_describe_themselves_to_models() -> None:
    names = {declared.name for declared in CORE_OPERATIONS}
    assert len(names) == len(CORE_OPERATIONS)
    assert names >= {
        "send_text_message", "send_message", "broadcast_text_message", "post_to_channel", "reply",
        "list_participants", "list_threads", "read_thread", "list_channels", "create_channel",
        "join_channel", "leave_channel", "read_message",
    }  # fmt: skip
    for declared in CORE_OPERATIONS:
        info = declared.info()
        assert info.name == declared.name
        assert 20 < len(info.description) < 300, info.name
        assert info.description.endswith(".")
        assert info.input_schema["type"] == info.output_schema["type"] == "object"


def test_operations_for_programs_are_not_offered_to_models() -> None:
    tools = {declared.name for declared in CORE_OPERATIONS if declared.tool}
    assert not tools & {"begin_turn", "record_step", "end_turn", "add_token", "revoke_tokens"}
