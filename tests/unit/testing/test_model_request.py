"""Requests as the scripted model reads them, and those it refuses."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.testing.model_request import ChatRequest, RequestRefused, parse_request

PROMPT = """<conversation>
  <threads>
    <thread id="direct_alice"><message sender="bob"><content>old</content></message></thread>
  </threads>
  <current_interaction>
    <incoming_thread_id>direct_alice</incoming_thread_id>
    <incoming_message id="m7" sender="alice" kind="human">
      <content>first</content>
    </incoming_message>
    <incoming_message id="m8" sender="alice"> <content>2 &lt; 3 &amp;
&quot;quoted&quot;</content> </incoming_message>
  </current_interaction>
</conversation>
Respond to the incoming message."""


def chat(*messages: dict[str, JsonValue], **more: JsonValue) -> ChatRequest:
    body: dict[str, JsonValue] = {"model": "m", "messages": list(messages), **more}
    return parse_request(body, {}, 0.0)


def user(text: str) -> dict[str, JsonValue]:
    return {"role": "user", "content": text}


def calls(*ids: str) -> dict[str, JsonValue]:
    function: JsonValue = {"name": "add", "arguments": "{}"}
    tool_calls: list[JsonValue] = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def result(call: str, text: str = "4") -> dict[str, JsonValue]:
    return {"role": "tool", "tool_call_id": call, "content": text}


REPLY: dict[str, JsonValue] = {"role": "assistant", "content": "Sure!"}


def test_the_incoming_message_is_read_from_the_prompt_even_after_a_correction() -> None:
    words = {
        "incoming": '2 < 3 &\n"quoted"',
        "sender": "alice",
        "thread": "direct_alice",
        "tool_result": "",
    }
    assert chat(user(PROMPT)).placeholders() == words
    corrected = chat(user(PROMPT), REPLY, user("Call a tool or finish."))
    assert corrected.placeholders() == words
    assert corrected.prompt == "Call a tool or finish."
    other = chat(user("hello"))
    assert (other.incoming, other.placeholders()["sender"]) == ("hello", ""), "a plain prompt"


def test_system_text_and_prompt_are_read_from_the_messages() -> None:
    request = chat(
        {"role": "system", "content": "You add."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        *(user("one"), REPLY, user("two")),
    )
    assert request.system == "You add.\n\nBe brief."
    assert request.prompt == "two"
    assert request.stream is False


def test_requests_that_real_endpoints_refuse_are_refused() -> None:
    bad: JsonValue = {"type": "function", "function": {"name": "a tool"}}
    cases: list[tuple[list[dict[str, JsonValue]], dict[str, JsonValue], str]] = [
        ([user("a"), calls("c")], {}, "no result"),
        ([user("a"), calls("c"), user("b")], {}, "messages.2: no result"),
        ([user("a"), calls("c", "d"), result("c")], {}, r"no result: \['d'\]"),
        ([user("a"), result("c")], {}, "messages.1: the result of a call"),
        ([user("a"), calls("c"), result("c"), result("c")], {}, "messages.3: the result of a call"),
        ([], {}, "messages"),
        ([{"role": "tutor", "content": "x"}], {}, "messages.0.role"),
        ([user("a")], {"tool_choice": "required"}, "tools"),
        ([user("a")], {"tools": [bad]}, r"tools\.0\.function\.name"),
    ]
    for messages, more, reason in cases:
        with pytest.raises(RequestRefused, match=reason):
            chat(*messages, **more)
    with pytest.raises(RequestRefused, match="object"):
        parse_request([1], {}, 0.0)
