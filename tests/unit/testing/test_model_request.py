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
    made: list[JsonValue] = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call: str, text: str = "4") -> dict[str, JsonValue]:
    return {"role": "tool", "tool_call_id": call, "content": text}


TOOL: JsonValue = {"type": "function", "function": {"name": "add", "parameters": {}}}


def test_the_incoming_message_is_read_out_of_a_conversation_prompt() -> None:
    assert chat(user(PROMPT)).words() == {
        "incoming": '2 < 3 &\n"quoted"',
        "sender": "alice",
        "thread": "direct_alice",
        "tool_result": "",
    }


def test_a_correction_leaves_the_incoming_message_what_it_was() -> None:
    said: dict[str, JsonValue] = {"role": "assistant", "content": "Sure!"}
    corrected = chat(user(PROMPT), said, user("Call a tool or finish."))
    assert corrected.words() == chat(user(PROMPT)).words()
    assert corrected.prompt == "Call a tool or finish."


def test_a_prompt_of_another_form_is_all_incoming() -> None:
    request = chat(user("hello"))
    assert request.incoming == "hello"
    assert request.words()["sender"] == ""


def test_system_and_prompt_are_found_among_the_messages() -> None:
    request = chat(
        {"role": "system", "content": "You add."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        user("one"),
        {"role": "assistant", "content": "yes?"},
        user("two"),
    )
    assert request.system == "You add.\n\nBe brief."
    assert request.prompt == "two"
    assert request.stream is False


def test_a_step_counts_the_answers_since_the_last_user_message() -> None:
    assert chat(user("a")).step == 1
    assert chat(user("a"), calls("c"), result("c")).step == 2
    assert chat(user("a"), calls("c"), result("c"), user("b")).step == 1
    assert chat({"role": "system", "content": "s"}).step == 1


def test_a_tool_result_is_one_only_if_it_comes_last() -> None:
    assert chat(user("a"), calls("c"), result("c", "42")).tool_result == "42"
    assert chat(user("a"), calls("c"), result("c"), user("b")).tool_result is None


def test_parallel_calls_may_be_answered_in_any_order() -> None:
    assert chat(user("a"), calls("c", "d"), result("d"), result("c")).step == 2


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([user("a"), calls("c")], "no result"),
        ([user("a"), calls("c"), user("b")], "messages.2: no result"),
        ([user("a"), calls("c", "d"), result("c")], r"no result: \['d'\]"),
        ([user("a"), result("c")], "messages.1: result of no call"),
        ([user("a"), calls("c"), result("c"), result("c")], "messages.3: result of no call"),
        ([], "messages"),
        ([{"role": "tutor", "content": "x"}], "messages.0.role"),
    ],
)
def test_conversations_that_the_real_endpoint_refuses_are_refused(
    messages: list[dict[str, JsonValue]], reason: str
) -> None:
    with pytest.raises(RequestRefused, match=reason):
        chat(*messages)


def test_a_required_tool_must_be_offered() -> None:
    assert chat(user("a"), tools=[TOOL], tool_choice="required").tool_required
    with pytest.raises(RequestRefused, match="tools"):
        chat(user("a"), tool_choice="required")


def test_a_named_tool_choice_requires_a_call() -> None:
    named: JsonValue = {"type": "function", "function": {"name": "add"}}
    assert chat(user("a"), tools=[TOOL], tool_choice=named).tool_required
    assert not chat(user("a"), tools=[TOOL], tool_choice="auto").tool_required


def test_tools_are_known_by_name_and_bad_names_are_refused() -> None:
    assert chat(user("a"), tools=[TOOL]).tools == ["add"]
    bad: JsonValue = {"type": "function", "function": {"name": "a tool"}}
    with pytest.raises(RequestRefused, match=r"tools\.0\.function\.name"):
        chat(user("a"), tools=[bad])


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(RequestRefused, match="object"):
        parse_request([1], {}, 0.0)
