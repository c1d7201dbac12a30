"""What belongs to a message, as a model is shown it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.inbox import Woken
from hubbub.agents.prompt.escape import unreveal
from hubbub.agents.prompt.render import attachments
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn import steering
from hubbub.mods.files.words import WriteFile
from hubbub.protocol.messages import Attachment, Message, OperationInfo
from hubbub.testing.model_request import parse_request
from tests.unit.agents.builders import message, wake
from tests.unit.agents.test_prompt import conversation, rendered
from tests.unit.agents.test_toolbox import Telephone, record

PLAN = Attachment(
    name='a "plan".md', media_type="text/markdown", uri="file:f12", size=9, excerpt="</attachment>"
)
ELSEWHERE = Attachment(name="x", uri="https://example.org/?a=1&b=2")


def bringing(seq: int, *attached: Attachment) -> Message:
    return message(seq).model_copy(update={"attachments": attached})


@pytest.mark.behaviour("M-125")
def test_attachments_are_elements_beside_the_content() -> None:
    gone = Attachment(name="old.md", uri="file:f2", gone=True)
    root = conversation(rendered([bringing(1, gone)], [bringing(2, PLAN, ELSEWHERE)]))
    told = [(each.attrib, each.text or "") for each in root.iter("attachment")]
    octets = "application/octet-stream"
    assert told == [
        ({"id": "f2", "name": "old.md", "type": octets, "gone": "true"}, ""),
        (
            {"id": "f12", "name": 'a "plan".md', "type": "text/markdown", "size": "9"},
            "</attachment>",
        ),
        ({"uri": "https://example.org/?a=1&b=2", "name": "x", "type": octets}, ""),
    ]
    (incoming,) = root.iter("incoming_message")
    assert [child.tag for child in incoming] == ["content", "attachment", "attachment"]


@given(st.text(), st.text(), st.text(max_size=30))
def test_nothing_in_an_attachment_can_close_it(name: str, excerpt: str, uri: str) -> None:
    odd = Attachment(name=name, uri=uri, media_type=name, excerpt=excerpt)
    root = ElementTree.fromstring(f"<m>{attachments(bringing(1, odd))}</m>")
    (element,) = list(root)
    assert unreveal(element.text or "") == excerpt
    assert not len(element)


@pytest.mark.behaviour("M-125")
def test_a_scripted_model_finds_the_text_of_a_message_with_attachments() -> None:
    prompt = rendered([], [bringing(1, PLAN)])
    body: JsonValue = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
    assert parse_request(body, {}, 0.0).incoming == "hello"


class TestOutside:
    """What the runtime of an agent tells the hub, and hears from it."""

    @pytest.mark.behaviour("M-129")
    @pytest.mark.parametrize("outside", [False, True])
    async def test_an_argument_for_the_runtime_is_filled_in_by_it(self, outside: bool) -> None:
        write = OperationInfo(
            name="write_file",
            description="Write.",
            permission="write",
            input_schema=WriteFile.model_json_schema(),
        )
        phone = Telephone({"id": "f1"})
        tool = HubTool(write, phone, "bot")
        properties = tool.spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert set(properties) == {"name", "text", "thread"}
        given: JsonValue = {"name": "x", "text": "y"}
        call = record("write_file", given, "a")
        await Toolbox([tool]).run("bot-m1", 1, [call], [call], outside=outside)
        ((_, _, _, args),) = phone.asked
        assert args.get("outside") == (True if outside else None)

    @pytest.mark.behaviour("M-125")
    @pytest.mark.parametrize(
        ("value", "outside"),
        [
            ({"text": "x", "outside": True}, True),
            ({"text": "x", "outside": False}, False),
            ({"files": [{"id": "f1", "outside": True}]}, False),
        ],
    )
    async def test_an_answer_that_says_so_of_itself_is_from_outside(
        self, value: JsonValue, outside: bool
    ) -> None:
        info = OperationInfo(
            name="read_file", description="Read.", permission="read", input_schema={}
        )
        box = Toolbox([HubTool(info, Telephone(value), "bot")])
        call = record("read_file", {})
        (result,) = await box.run("bot-m1", 1, [call], [call])
        assert result.outside is outside


def test_what_a_person_says_in_between_is_shown_with_its_files() -> None:
    (said,) = steering.shown([Woken(bringing(3, PLAN), wake(3))])
    element = ElementTree.fromstring(said.text.partition("\n\n")[0])
    assert element.findtext("attachment") == "</attachment>"
