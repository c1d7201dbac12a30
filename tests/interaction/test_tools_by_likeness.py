"""Of many tools a model is described those that are like what has come in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import LlmAgent, Network, tool
from hubbub.agents.tools.function import FunctionTool
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import Script, ScriptedAnswer, ScriptedCall
from hubbub.testing.model_server import ModelServer

pytestmark = pytest.mark.behaviour("K-15")

DONE = ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments={"message": "done"})])
ABOUT = {
    "track_parcel": "Say where a parcel is.",
    "refund_order": "Pay the money for an order back.",
    "print_label": "Print a label.",
    "opening_hours": "Say when the shop is open.",
}
VECTORS = {
    "(?i)parcel|delivery|van": [1.0, 0.1],
    "(?i)money|refund": [0.1, 1.0],
    "(?i)label": [-1.0, 0.2],
    "": [-1.0, -1.0],
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def shop() -> list[FunctionTool[..., object]]:
    def made(name: str, about: str) -> FunctionTool[..., object]:
        def function() -> str:
            return name

        function.__name__, function.__doc__ = name, about
        return tool(function)

    return [made(name, about) for name, about in ABOUT.items()]


def clerk(model: ModelServer, select: dict[str, JsonValue]) -> LlmAgent:
    tools = [*shop(), "send_text_message"]
    return LlmAgent(
        "clerk",
        model="m",
        base_url=model.base_url,
        retries=0,
        tools=tools,
        select_over=2,
        select=select,
    )


def described(model: ModelServer, request: int = -1) -> set[str]:
    return set(model.requests[request].tools) & set(ABOUT)


Ask = Callable[[str], object]


async def asked(
    model: ModelServer, select: dict[str, JsonValue], *texts: str
) -> tuple[list[set[str]], Turn]:
    """What of the shop's tools the model was described with each question, and the last turn."""
    found = []
    async with Network(clerk(model, select), people=["ann"]) as net:
        for text in texts:
            answer = await net.ask("clerk", text, by="ann")
            found.append(described(model))
    return found, answer.turn


def kept(cache: Path) -> list[Path]:
    return [*cache.rglob("*.json")]


def notes(turn: Turn) -> str:
    return "; ".join(turn.steps[0].notes)


async def test_by_words_those_are_described_that_share_words_with_the_question() -> None:
    async with ModelServer(Script(answers=[DONE, DONE, DONE])) as model:
        found, turn = await asked(
            model, {"by": "words", "first": 1}, "a refund please", "the parcel?", "hm"
        )
    assert found == [{"refund_order"}, {"track_parcel"}, set()]
    assert "use_tools" in model.requests[0].tools, "the others can be picked"
    assert "words" not in notes(turn)


async def test_by_embeddings_those_that_mean_the_same_and_all_tools_are_asked_for_once() -> None:
    select: dict[str, JsonValue] = {"by": "embeddings", "model": "vectors", "first": 1}
    script = Script(answers=[DONE, DONE, DONE], embeddings=VECTORS)
    async with ModelServer(script) as model:
        found, turn = await asked(model, select, "where is my delivery?", "I want my money")
        assert [len(texts) for texts in model.embedded] == [4, 1, 1]
        assert model.embedded[0][0] == "track parcel: Say where a parcel is."
        again, _ = await asked(model, select, "is the van late?")
    assert found == [{"track_parcel"}, {"refund_order"}]
    assert again == [{"track_parcel"}]
    assert [len(texts) for texts in model.embedded] == [4, 1, 1, 1], "another process knows them"
    assert "words" not in notes(turn)


async def test_an_endpoint_without_embeddings_leaves_words_and_a_note_in_the_record() -> None:
    async with ModelServer(Script(answers=[DONE])) as model:
        found, turn = await asked(model, {"by": "embeddings", "first": 1}, "a refund please")
    assert found == [{"refund_order"}]
    assert "tools were chosen by their words" in notes(turn)
    assert "returned no embeddings: there is no POST /v1/embeddings" in notes(turn)


async def test_vectors_that_cannot_be_compared_leave_words_too(cache: Path) -> None:
    uneven = {"(?i)refund|money": [1.0], "": [1.0, 0.5]}
    script = Script(answers=[DONE], embeddings=uneven)
    async with ModelServer(script) as model:
        found, turn = await asked(model, {"by": "embeddings", "first": 1}, "a refund please")
    assert found == [{"refund_order"}]
    assert "there is not one for each text" in notes(turn)
    assert not kept(cache)


async def test_what_was_kept_and_is_damaged_is_asked_for_again(cache: Path) -> None:
    select: dict[str, JsonValue] = {"by": "embeddings", "first": 1}
    script = Script(answers=[DONE, DONE], embeddings=VECTORS)
    async with ModelServer(script) as model:
        await asked(model, select, "where is my delivery?")
        (file,) = kept(cache)
        file.write_text("[1, ")
        found, _ = await asked(model, select, "where is my delivery?")
    assert found == [{"track_parcel"}]
    assert [len(texts) for texts in model.embedded] == [4, 1, 4, 1]
