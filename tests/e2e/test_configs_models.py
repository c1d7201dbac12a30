"""The configs with models, each run against a scripted model."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hubbub.app.preflight import load_checked
from hubbub.errors import UserError
from hubbub.mods.documents.schemas import DocumentHistory
from hubbub.mods.files.schemas import File
from hubbub.mods.schedule.schemas import Reminders
from hubbub.mods.search.schemas import SearchHits
from hubbub.mods.tasks.schemas import Tasks
from hubbub.protocol.control import Approvals
from hubbub.testing.model_server import ModelServer, load_script
from tests.e2e.support.config_network import ROOT, Network, run_here

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "scripts"
CONFIGS = ["team", "support-desk", "debate", "pipeline", "newsroom", "software-team"]


@contextlib.asynccontextmanager
async def scripted(config: str, folder: Path) -> AsyncIterator[tuple[Network, ModelServer]]:
    """The config with the model of `scripts/<config>.yaml`, which must answer every request."""
    async with ModelServer(load_script(SCRIPTS / f"{config}.yaml")) as model:
        variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "scripted"}
        async with run_here(ROOT / "configs" / f"{config}.yaml", folder, variables) as network:
            yield network, model
        assert model.mistakes == []


@pytest.mark.behaviour("L-7")
async def test_the_team_researches_writes_and_answers(tmp_path: Path) -> None:
    async with scripted("team", tmp_path) as (network, model):
        ann = await network.join("ann")
        await ann.tells("coordinator", "Why is the sky blue?")
        assert (await ann.hears("coordinator")).text == "I am having that looked into."
        answer = await ann.hears("coordinator")
        assert answer.text == "Why is the sky blue? Because air scatters blue light most."
        assert answer.thread_id == "dm.ann.coordinator"
    assert all(request.tool_required for request in model.requests)
    rules = [rule for rule in model.rules if not rule.startswith("a turn ends")]
    assert rules == [
        "coordinator takes a question",
        "researcher answers",
        "coordinator hands the facts on",
        "writer writes",
        "coordinator delivers",
    ]


@pytest.mark.behaviour("L-7")
async def test_the_support_desk_routes_questions_to_agents_or_a_person(tmp_path: Path) -> None:
    async with scripted("support-desk", tmp_path) as (network, _):
        carol, maria = await network.join("carol"), await network.join("maria")
        await carol.posts("help", "@triage until when can a lamp be returned?")
        answer = await carol.hears("triage")
        assert answer.text.startswith("@carol Unused goods can be returned within 30 days.")
        await carol.posts("help", "@triage what do 3 lamps with delivery cost?")
        assert (await carol.hears("triage")).text == "@carol 3 * 24.50 + 4.90 = 78.4"
        await carol.posts("help", "@triage I want to complain about a broken clock")
        assert (await carol.hears("triage")).text == "@carol a person will come back to you."
        call = await maria.hears("triage", lambda m: m.thread_id == "channel.backoffice")
        assert call.text == "@maria carol complains about a broken clock"
        assert "maria" in call.mentions
        assert {m.thread_id for m in carol.heard} == {"channel.help"}


@pytest.mark.behaviour("L-7")
async def test_the_debate_ends_after_two_public_rounds(tmp_path: Path) -> None:
    async with scripted("debate", tmp_path) as (network, model):
        ann = await network.join("ann")
        await ann.broadcasts("@moderator Motion: tabs are better than spaces.")
        closing = await ann.hears("moderator", lambda m: "closed" in m.text)
        assert closing.type == "broadcast"
        assert [m.sender_id for m in ann.heard] == [
            "moderator", "advocate", "moderator", "sceptic", "moderator",
            "advocate", "moderator", "sceptic", "moderator",
        ]  # fmt: skip
        assert ann.heard[0].text.startswith("The motion is: tabs are better than spaces.")
        assert "broadcast" in model.requests[-1].prompt


@pytest.mark.behaviour("L-7", "O-1")
async def test_the_pipeline_plans_retries_asks_the_person_and_answers(tmp_path: Path) -> None:
    async with scripted("pipeline", tmp_path) as (network, model):
        ann = await network.join("ann")
        await ann.tells("planner", "What do two nights in Rome cost for two, and what is to see?")
        question = await ann.hears("planner")
        assert question.text == "It is more than 400 euros. Is that fine?\n1. yes\n2. no"
        await ann.tells("planner", "yes")
        answer = await ann.hears("planner")
        expected = "Rome for two costs 454.0 euros. See: The forum, the stairs, the fountain."
        assert answer.text == expected
    assert [rule for rule in model.rules if not rule.startswith("guide")] == [
        "router sends a trip to the planner",
        "planner plans",
        "executor fills in the room",
        "reflector has the room asked for again",
        "executor fills in the room",
        "reflector asks the person",
        "reflector accepts",
    ]


@pytest.mark.behaviour("L-7", "M-300")
async def test_the_newsroom_writes_and_publishes_a_shared_document(
    tmp_path: Path,
) -> None:
    async with scripted("newsroom", tmp_path) as (network, _):
        me = await network.join("me")
        await me.posts("desk", "@editor an article on the colour of the sky")
        reply = await me.hears("editor", lambda m: "me" in m.mentions)
        assert reply.text == "@me it is in the channel published"
        article = await me.hears("editor", lambda m: m.thread_id == "channel.published")
        assert article.text == "The sky is blue because air scatters blue light most."
        tasks = Tasks.model_validate(await me.client.call("list_tasks")).tasks
        assert {(task.id, task.state, task.owner) for task in tasks} == {
            ("t1", "done", "reporter"),
            ("t2", "done", "writer"),
        }
        history = await me.client.call("document_history", id="d1")
        versions = DocumentHistory.model_validate(history).versions
        assert [version.author for version in versions] == ["writer", "reporter", "editor"]
        result = SearchHits.model_validate(await me.client.call("search", query="scatters"))
        assert {"messages", "documents"} <= {hit.kind for hit in result.hits}
        await me.posts("desk", "@editor an article on the same again")
        await me.hears("writer", lambda m: m.text == "@editor ready: d2")


@pytest.mark.behaviour("L-7", "M-301")
async def test_a_newsroom_reminder_wakes_the_editor(tmp_path: Path) -> None:
    async with scripted("newsroom", tmp_path) as (network, _):
        me = await network.join("me")
        listed = await me.client.call("list_reminders", everybody=True)
        assert [r.when for r in Reminders.model_validate(listed).reminders] == ["0 9 * * 1-5"]
        text = "good morning: look at the board"
        await me.client.call(
            "remind", text=text, when="in 1s", thread="channel_desk", wakes=["editor"]
        )
        reminder = await me.hears("hub", lambda m: m.timer_of == "me")
        assert text in reminder.text
        assert (await me.hears("editor")).text == "Nothing is open."


@pytest.mark.behaviour("L-7", "M-302")
async def test_the_software_team_releases_only_after_a_person_approves(
    tmp_path: Path,
) -> None:
    async with scripted("software-team", tmp_path) as (network, model):
        me = await network.join("me")
        wish = {"thread": "channel_dev", "name": "wish.md", "text": "Tell leap years from others."}
        assert File.model_validate(await me.client.call("write_file", **wish)).id == "f1"
        await me.posts("dev", "@lead please make what f1 asks for")
        await me.hears("tester", lambda m: m.text == "@lead f3 works")
        asked = await me.hears("hub", lambda m: "release" in m.text)
        assert "me" in asked.mentions
        assert not (tmp_path / "released").exists()
        listed = await me.client.call("list_approvals")
        (waiting,) = Approvals.model_validate(listed).approvals
        assert waiting.arguments["name"] == "leap_years.py"
        await me.client.call("approve", id=waiting.id)
        assert (await me.hears("lead", lambda m: "me" in m.mentions)).text.endswith("is released")
        assert "year % 400" in (tmp_path / "released" / "leap_years.py").read_text()
        await me.posts("dev", "@lead please make what f1 asks for")
        await me.hears("tester", lambda m: m.text == "@lead f5 works")
    assert "tester sends it back" in model.rules


@pytest.mark.behaviour("L-10")
def test_a_missing_api_key_is_reported_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for config in CONFIGS:
        with pytest.raises(UserError) as refused:
            load_checked(ROOT / "configs" / f"{config}.yaml")
        assert "OPENAI_API_KEY" in str(refused.value), config
        assert "hubbub init" in str(refused.value), config
    assert not list(tmp_path.iterdir())
