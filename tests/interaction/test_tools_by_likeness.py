"""Selection among many tools by their similarity to the incoming message."""

from __future__ import annotations

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
    def build(name: str, about: str) -> FunctionTool[..., object]:
        def function() -> str:
            return name

        function.__name__, function.__doc__ = name, about
        return tool(function)

    return [build(name, about) for name, about in ABOUT.items()]


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


def described_tools(model: ModelServer, request: int = -1) -> set[str]:
    return set(model.requests[request].tools) & set(ABOUT)


async def ask_clerk(
    model: ModelServer, select: dict[str, JsonValue], *texts: str
) -> tuple[list[set[str]], Turn]:
    """The shop's tools described to the model for each question, and the last turn."""
    tools = []
    async with Network(clerk(model, select), people=["ann"]) as net:
        for text in texts:
            answer = await net.ask("clerk", text, by="ann")
            tools.append(described_tools(model))
    return tools, answer.turn


def cached_files(cache: Path) -> list[Path]:
    return [*cache.rglob("*.json")]


def notes(turn: Turn) -> str:
    return "; ".join(turn.steps[0].notes)


async def test_selection_by_words_describes_tools_that_share_words_with_the_question() -> None:
    async with ModelServer(Script(answers=[DONE, DONE, DONE])) as model:
        tools, turn = await ask_clerk(
            model, {"by": "words", "first": 1}, "a refund please", "the parcel?", "hm"
        )
    assert tools == [{"refund_order"}, {"track_parcel"}, set()]
    assert "use_tools" in model.requests[0].tools, "the others can be selected"
    assert "words" not in notes(turn)


async def test_selection_by_embeddings_describes_similar_tools_and_embeds_each_once() -> None:
    select: dict[str, JsonValue] = {"by": "embeddings", "model": "vectors", "first": 1}
    script = Script(answers=[DONE, DONE, DONE], embeddings=VECTORS)
    async with ModelServer(script) as model:
        tools, turn = await ask_clerk(model, select, "where is my delivery?", "I want my money")
        assert [len(texts) for texts in model.embedded] == [4, 1, 1]
        assert model.embedded[0][0] == "track parcel: Say where a parcel is."
        again, _ = await ask_clerk(model, select, "is the van late?")
    assert tools == [{"track_parcel"}, {"refund_order"}]
    assert again == [{"track_parcel"}]
    assert [len(texts) for texts in model.embedded] == [4, 1, 1, 1], "cached across processes"
    assert "words" not in notes(turn)


async def test_an_endpoint_without_embeddings_falls_back_to_words_with_a_note() -> None:
    async with ModelServer(Script(answers=[DONE])) as model:
        tools, turn = await ask_clerk(model, {"by": "embeddings", "first": 1}, "a refund please")
    assert tools == [{"refund_order"}]
    assert "tools were chosen by their words" in notes(turn)
    assert "returned no embeddings: there is no POST /v1/embeddings" in notes(turn)


async def test_vectors_of_different_lengths_fall_back_to_words(cache: Path) -> None:
    uneven = {"(?i)refund|money": [1.0], "": [1.0, 0.5]}
    script = Script(answers=[DONE], embeddings=uneven)
    async with ModelServer(script) as model:
        tools, turn = await ask_clerk(model, {"by": "embeddings", "first": 1}, "a refund please")
    assert tools == [{"refund_order"}]
    assert "there is not one for each text" in notes(turn)
    assert not cached_files(cache)


async def test_a_damaged_cache_is_requested_again(cache: Path) -> None:
    select: dict[str, JsonValue] = {"by": "embeddings", "first": 1}
    script = Script(answers=[DONE, DONE], embeddings=VECTORS)
    async with ModelServer(script) as model:
        await ask_clerk(model, select, "where is my delivery?")
        (file,) = cached_files(cache)
        file.write_text("[1, ")
        tools, _ = await ask_clerk(model, select, "where is my delivery?")
    assert tools == [{"track_parcel"}]
    assert [len(texts) for texts in model.embedded] == [4, 1, 4, 1]
