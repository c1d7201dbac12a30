"""Agents that owners add and edit on a running hub, with failing stores and unusual files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub.app.agent_folder import DiskAgentFiles
from hubbub.app.supervisor import Supervisor
from hubbub.app.units import Unit
from hubbub.config.loader import LoadedConfig, load
from hubbub.config.models import AgentConfig
from hubbub.config.paths import MEMORY_STORE
from hubbub.config.problems import shown_path
from hubbub.network.ports import Store
from tests.interaction.peers import Network, Networks, Peer, soon
from tests.interaction.stores import MoodyStore

NETWORK = """\
network: {name: made, auth: open, store: "sqlite::memory:"%s}
models: {default: {model: scripted, base_url: "http://127.0.0.1:9/v1"}}
"""
FOLDER = ", agent_folder: {}"


class Editor:
    """A hub whose owners can add agents, and Ann, who is one of them."""

    def __init__(self, loaded: LoadedConfig, network: Network, ann: Peer):
        self.config, self.network, self.ann = loaded.path, network, ann
        self._supervisor = Supervisor([], lambda event: None)  # not running: nothing is started
        self.files = DiskAgentFiles(loaded, self._supervisor, lambda agent, _: Unit((agent,), ()))
        network.hub.services.agent_editor.files = self.files

    def agents(self) -> Mapping[str, AgentConfig]:
        """The agents in the config as it is now."""
        return load(self.config).file.agents

    def processes(self) -> list[str]:
        return [each.agent for each in self._supervisor.processes()]


@asynccontextmanager
async def editor(
    networks: Networks,
    folder: Path,
    config: str = NETWORK % FOLDER,
    *,
    store: str | Store = MEMORY_STORE,
) -> AsyncIterator[Editor]:
    (path := folder / "net.yaml").write_text(config)
    loaded = load(path)
    async with networks.start(loaded.file, store=store) as network, soon():
        yield Editor(loaded, network, await network.join("ann"))


def agent_file(folder: Path, name: str, text: str) -> Path:
    """A file in the agent folder."""
    (path := folder / "agents.d" / f"{name}.yaml").parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.behaviour("U-17")
async def test_an_edit_that_cannot_be_stored_restores_the_file_and_starts_nothing(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, file = MoodyStore(), tmp_path / "agents.d" / "rev.yaml"
    async with editor(in_memory, tmp_path, store=store) as at:
        store.failing = 1
        error = await at.ann.ask("add_agent", agent="rev", instruction="Be.")
        assert error["code"] == "store_unavailable"
        assert not file.exists()
        assert at.processes() == []
        await at.ann.call("add_agent", agent="rev", instruction="Be.")
        assert at.processes() == ["rev"]
        before = file.read_bytes()
        for operation, arguments in (
            ("edit_agent", {"instruction": "Other."}),
            ("remove_agent", {}),
        ):
            store.failing = 1
            error = await at.ann.ask(operation, agent="rev", **arguments)
            assert error["code"] == "store_unavailable"
            assert file.read_bytes() == before
        read = await at.ann.call("read_agent", agent="rev")
        assert [each["version"] for each in read["versions"]] == [1]


@pytest.mark.behaviour("U-17")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("", "no folder for agents"),
        (FOLDER + ", hosts: [news.example.org]", "others can reach this open network"),
    ],
)
async def test_agents_cannot_be_added_without_a_folder_or_where_anyone_is_an_owner(
    in_memory: Networks, tmp_path: Path, settings: str, reason: str
) -> None:
    async with editor(in_memory, tmp_path, NETWORK % settings) as at:
        choices = await at.ann.call("agent_choices")
        assert reason in choices["refused"]
        assert (choices["agents"], choices["tools"]) == ([], [])
        error = await at.ann.ask("add_agent", agent="rev", instruction="Be.")
        assert error["code"] == "forbidden"
    assert at.agents() == {}


@pytest.mark.behaviour("U-17")
async def test_an_agent_stays_editable_after_both_the_store_and_the_rollback_failed(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = MoodyStore()
    async with editor(in_memory, tmp_path, store=store) as at:
        await at.ann.call("add_agent", agent="rev", instruction="Be.")
        store.gate.clear()
        edit = at.ann.ask("edit_agent", agent="rev", instruction="Be other.")
        editing = asyncio.create_task(edit)
        await store.until_waiting()
        draft = tmp_path / "agents.d" / ".rev.yaml.tmp"
        draft.mkdir()  # nothing can be written there now
        store.failing = 1
        store.gate.set()
        assert (await editing)["code"] == "store_unavailable"
        draft.rmdir()
        await at.ann.call("edit_agent", agent="rev", instruction="Be another.")
        assert at.agents()["rev"].instruction == "Be another."


@pytest.mark.behaviour("U-17")
async def test_an_agent_without_chosen_tools_has_all_that_the_operator_allows(
    in_memory: Networks, tmp_path: Path
) -> None:
    allowed = ["send_text_message", "read_thread"]
    config = NETWORK % f", agent_folder: {{tools: [{', '.join(allowed)}]}}"
    async with editor(in_memory, tmp_path, config) as at:
        await at.ann.call("add_agent", agent="rev", instruction="Be.", tools=["read_thread"])
        error = await at.ann.ask("edit_agent", agent="rev", tools=["stop"])
        assert "not one of the available tools" in error["message"]
        await at.ann.call("edit_agent", agent="rev", tools=None)
        assert "tools" not in (await at.ann.call("read_agent", agent="rev"))["fields"]
        assert at.agents()["rev"].tools == allowed


@pytest.mark.behaviour("U-17")
async def test_a_hand_edited_file_that_cannot_be_changed_is_reported_and_can_be_removed(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with editor(in_memory, tmp_path) as at:
        for name, more in (
            ("empty", "card:\n    daily:"),
            ("123", "greet: Hello."),  # the key is a number
            ("twice", "instruction: Be again."),
            ("other", "card: a text"),
        ):
            text = f"agents:\n  {name}:\n    instruction: Be.\n    {more}\n"
            file = agent_file(tmp_path, name, text)
            error = await at.ann.ask("edit_agent", agent=name, description="It is.", daily_usd=1.0)
            assert (error["code"], file.read_text()) == ("conflict", text)
            assert f"{name}.yaml was edited by hand and cannot be changed" in error["message"]
            await at.ann.call("remove_agent", agent=name)  # also one that was never started
            assert not file.exists()


@pytest.mark.behaviour("U-17")
async def test_an_agent_that_is_still_being_added_cannot_be_changed_by_another_owner(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = MoodyStore()
    async with editor(in_memory, tmp_path, store=store) as at:
        bob = await at.network.join("bob")
        store.gate.clear()
        adding = asyncio.create_task(at.ann.call("add_agent", agent="rev", instruction="Be."))
        await store.until_waiting()
        store.waiting.clear()
        store.gate.set()  # commits its record, but not yet its membership
        store.gate.clear()
        await store.until_waiting()
        error = await bob.ask("remove_agent", agent="rev")
        assert error["code"] == "conflict"
        store.gate.set()
        await adding
        assert at.processes() == ["rev"]
        await bob.call("remove_agent", agent="rev")
        assert at.processes() == []


@pytest.mark.behaviour("U-17")
async def test_environment_variables_are_shown_by_name_and_stay_in_the_file(
    in_memory: Networks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR_CODE", "4711")
    text = "agents:\n  rev:\n    instruction: The code is ${DOOR_CODE}.\n"
    file = agent_file(tmp_path, "rev", text)
    async with editor(in_memory, tmp_path) as at:
        read = await at.ann.call("read_agent", agent="rev")
        assert read["fields"]["instruction"] == "The code is ${DOOR_CODE}."
        assert "4711" not in str(read)
        await at.ann.call("edit_agent", agent="rev", description="It opens.")
        assert file.read_text().startswith(text)
        error = await at.ann.ask("edit_agent", agent="rev", instruction="It was ${DOOR_CODE}.")
        assert "environment variable" in error["message"]
        assert at.agents()["rev"].instruction == "The code is 4711."


@pytest.mark.behaviour("U-17")
async def test_variables_in_fields_other_than_text_are_shown_by_value_and_cannot_be_changed(
    in_memory: Networks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("STEPS", "7"), ("USD", "1.5"), ("MODE", "read_only")):
        monkeypatch.setenv(name, value)
    text = (
        "agents:\n  rev:\n    instruction: Be.\n    max_steps: ${STEPS}\n"
        "    permission_mode: ${MODE:-full}\n    daily:\n      usd: ${USD}\n"
    )
    file = agent_file(tmp_path, "rev", text)
    async with editor(in_memory, tmp_path) as at:
        fields = (await at.ann.call("read_agent", agent="rev"))["fields"]
        numbers = {"max_steps": 7, "daily_usd": 1.5}
        assert fields == {"instruction": "Be.", "permission_mode": "read_only", **numbers}
        await at.ann.call("edit_agent", agent="rev", description="It reads.", max_steps=7)
        assert file.read_text().startswith(text)
        error = await at.ann.ask("edit_agent", agent="rev", max_steps=8)
        assert "environment variable" in error["message"]


@pytest.mark.behaviour("U-17")
async def test_agents_in_the_networks_own_file_are_edited_there_and_the_rest_stays_unchanged(
    in_memory: Networks, tmp_path: Path
) -> None:
    text = f"""\
# Who is here.
{NETWORK % ", agent_folder: {tools: [read_thread, finish]}"}\
include: more.yaml
agents:
  rev:  # blunt
    # as agreed
    instruction: Be.
    tools: [./own.py:run, read_thread]
  one: &one {{instruction: Be one.}}
  two: *one
  count: {{kind: python, class: "own.py:Count"}}
"""
    (more := tmp_path / "more.yaml").write_text("agents:\n  far:\n    instruction: Be far.\n")
    code = "class Count: ...\ndef run() -> str:\n    return ''\n"
    (tmp_path / "own.py").write_text(code)
    async with editor(in_memory, tmp_path, text) as at:
        ann, config = at.ann, at.config
        config.chmod(0o600)
        assert (await ann.call("agent_choices"))["agents"] == ["far", "one", "rev", "two"]
        await ann.call("edit_agent", agent="rev", instruction="Be blunt.", max_steps=3)
        changed = text.replace("Be.", "Be blunt.").replace(
            "read_thread]\n  one", "read_thread]\n    max_steps: 3\n  one"
        )
        assert config.read_text() == changed
        assert config.stat().st_mode & 0o777 == 0o600
        await ann.call("edit_agent", agent="far", description="Far.")
        assert at.agents()["far"].card.description == "Far."
        assert "Far." in more.read_text()
        refused = [
            await ann.ask("remove_agent", agent="rev"),
            await ann.ask("edit_agent", agent="count", description="It counts."),
            await ann.ask("edit_agent", agent="two", instruction="Be two."),
            await ann.ask("edit_agent", agent="rev", tools=None),
            await ann.ask("edit_agent", agent="rev", tools=["./other.py:run"]),
        ]
        assert [each["message"] for each in refused] == [
            f"it is defined in {at.files.file('rev')}: remove it there and restart the network",
            "no agent named 'count' can be changed",
            f"{at.files.file('two')} shares parts of it with other agents: edit that file",
            "tools: its file lists its tools: choose from those that are allowed",
            "tools: './other.py:run' is not one of the available tools",
        ]
        assert config.read_text() == changed
        await ann.call("roll_back_agent", agent="rev", to=1)
        assert config.read_text() == text
        read = await ann.call("read_agent", agent="rev")
        assert [each.get("by") for each in read["versions"]] == ["ann", "ann", None]


@pytest.mark.behaviour("U-17")
async def test_an_agent_is_not_saved_with_what_only_the_next_start_of_the_network_reads(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with editor(in_memory, tmp_path) as at:
        ann, config = at.ann, at.config
        await ann.call("add_agent", agent="rev", instruction="Be.")
        path = tmp_path / "agents.d" / "rev.yaml"
        before = path.read_text()
        config.write_text(NETWORK % FOLDER + "channels: {desk: {members: []}}\n")
        refused = [await ann.ask("edit_agent", agent="rev", channels=["desk"])]
        config.write_text(NETWORK % "")
        refused += [
            await ann.ask("edit_agent", agent="rev", instruction="Be blunt."),
            await ann.ask("add_agent", agent="one", instruction="Be one."),
        ]
        name = shown_path(config)
        assert [each["message"] for each in refused] == [
            f"channels: {name} has 'desk' only since the network started: restart it first",
            f"{name} no longer has {at.files.file('rev')}: restart the network first",
            f"{name} no longer has {at.files.file('one')}: restart the network first",
        ]
        assert path.read_text() == before
        assert at.processes() == ["rev"]
