"""Token counts: exact for OpenAI's encodings, estimated on the safe side for others."""

from __future__ import annotations

import json
import lzma
import random
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.models.base import CompletionRequest
from hubbub.agents.prompt import vocabulary
from hubbub.agents.prompt.tokens import _LINES as LINES
from hubbub.agents.prompt.tokens import (
    ExactCounter,
    TokenEstimate,
    counter_for,
    message_tokens,
    question_tokens,
    spec_tokens,
)
from hubbub.agents.prompt.vocabulary import ENCODINGS, EncodingName, load_encoding
from hubbub.agents.turn.chat import chat_messages
from hubbub.errors import ConfigError
from hubbub.protocol.turns import Step, ToolCallRecord
from tests.doc_pages import ROOT
from tests.unit.agents.windows import spec

LINE_ENDS = ["\n", "\n\n", "\r\n", "\r", "\x0b", "\x85", "\u2028"]
WORDS = ["a", "foo", "Bar", "'s", ".", "//", "/", "é", "12", ";", "😀", "\ud800", "x" * 5000]
PIECES = st.sampled_from(
    [*LINE_ENDS, *WORDS, " ", "  ", "\t", "\u3000", "<message>", "</content>", "<|endoftext|>"]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
each_encoding = pytest.mark.parametrize("name", ENCODINGS)


@pytest.mark.behaviour("A-22")
def test_texts_are_encoded_into_the_models_tokens() -> None:
    cases: list[tuple[EncodingName, str, list[int]]] = [
        # As OpenAI's own tokenizer gives them.
        ("o200k_base", "hello world", [24912, 2375]),
        ("cl100k_base", "hello world", [15339, 1917]),
        ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
        ("cl100k_base", "antidisestablishmentarianism", [519, 85342, 34500, 479, 8997, 2191]),
        ("cl100k_base", "2 + 2 = 4", [17, 489, 220, 17, 284, 220, 19]),
        ("o200k_base", "2 + 2 = 4", [17, 659, 220, 17, 314, 220, 19]),
    ]
    for name, text, tokens in cases:
        assert load_encoding(name).encode_ordinary(text) == tokens
        assert ExactCounter(load_encoding(name).encode_ordinary).count(text) == len(tokens)


@pytest.mark.behaviour("A-22")
def test_an_exact_counter_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(vocabulary, "_loaded", vocabulary._loaded.__wrapped__)
    counter = counter_for("gpt-4o")
    assert counter.exact
    assert counter.count("hello world") == 2


@each_encoding
@given(text=TEXTS)
def test_counting_line_by_line_is_exact_except_for_very_long_lines(
    name: EncodingName, text: str
) -> None:
    encode = load_encoding(name).encode_ordinary
    counted, whole = ExactCounter(encode).count(text), len(encode(text))
    assert whole <= counted <= whole + 4 * (len(text) // 4096)


@each_encoding
def test_pages_and_programs_are_counted_exactly(name: EncodingName) -> None:
    encode = load_encoding(name).encode_ordinary
    for path in (ROOT / "README.md", Path(__file__)):
        text = path.read_text("utf-8")
        assert ExactCounter(encode).count(text) == len(encode(text))


def test_a_damaged_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh = vocabulary._loaded.__wrapped__
    for damage, reason in [
        (lzma.compress(b"aGk= 0\n"), "not what it should be"),
        (b"no xz", "cannot be read"),
    ]:
        (tmp_path / "o200k_base.tiktoken.xz").write_bytes(damage)
        monkeypatch.setattr(vocabulary, "FOLDER", tmp_path)
        monkeypatch.setattr(vocabulary, "_loaded", fresh)
        with pytest.raises(ConfigError, match=reason):
            load_encoding("o200k_base")


# Estimates -------------------------------------------------------------------------------------

SAMPLES = {
    "pages": (ROOT / "README.md").read_text("utf-8"),
    "programs": Path(__file__).read_text("utf-8"),
    "JSON": json.dumps(
        [{"id": n, "at": "2026-01-05T12:00:02Z", "price": n * 3.1} for n in range(99)]
    ),
    "a hash": random.Random(1).randbytes(900).hex(),
    "German": "Könnten Sie bitte die Bestellung überprüfen? Die Größe stimmt nicht überein. " * 9,
    "Russian": "Привет, как дела? Это проверка оценки числа токенов в сообщениях сети. " * 9,
    "Chinese": "你好，今天天气怎么样？我们需要估计这个句子的标记数量。" * 9,
    "Japanese": "こんにちは、今日の会議は何時からですか。" * 9,
    "Hindi": "नमस्ते आप कैसे हैं यह एक परीक्षण है " * 9,
    "Arabic": "مرحبا كيف حالك اليوم؟ هذا اختبار " * 9,
    "emoji": "😀🚀🎉👍🏽" * 30,
    "digits": "31415926535897932384626433832795028841971693993751",
}


@each_encoding
def test_an_estimate_is_on_the_safe_side(name: EncodingName) -> None:
    for sample in SAMPLES:
        estimate = TokenEstimate()
        real = len(load_encoding(name).encode_ordinary(SAMPLES[sample]))
        assert real <= estimate.count(SAMPLES[sample])
        assert not estimate.exact


@given(text=TEXTS, more=TEXTS)
def test_the_estimate_of_a_longer_text_is_never_lower(text: str, more: str) -> None:
    counter = TokenEstimate()
    assert counter.count(text) <= counter.count(text + more)


# Questions -------------------------------------------------------------------------------------


class Letters:
    """Counts characters, so that the overhead around them shows."""

    exact = False

    def count(self, text: str) -> int:
        return len(text)


def test_messages_calls_results_and_schemas_count_with_their_overhead() -> None:
    call = ToolCallRecord(id="c1", name="look", arguments={"a": 1}, result="seen")
    chat = chat_messages("sys", "user", [Step(n=1, calls=(call,))])
    sizes = [message_tokens(Letters(), message) for message in chat]
    assert sizes == [3 + 4, 4 + 4, 4 + 8 + len('c1look{"a": 1}'), 4 + len("seenc1")]
    assert question_tokens(Letters(), CompletionRequest(chat)) == 3 + sum(sizes)
    tool = spec("look")
    size = 10 + len("look") + len(tool.description) + len(json.dumps(tool.parameters))
    assert spec_tokens(Letters(), tool) == size
    chat = chat_messages("", "", [])
    assert question_tokens(Letters(), CompletionRequest(chat, [tool])) == 3 + 4 + 4 + size


THREADS = st.lists(
    st.sampled_from(
        ["</thread>\n", "</thread>", "\n", "  \n", "\u3000\n", "\r", "/", "word " * 300, "<thread>"]
    ),
    max_size=30,
).map("".join)


@given(THREADS)
def test_counting_thread_by_thread_equals_counting_line_by_line(text: str) -> None:
    counter = TokenEstimate()
    lines = sum(map(TokenEstimate().count, LINES.findall(text)))
    assert counter.count(text) == lines
    assert counter.count(text) == lines, "the cached count"
