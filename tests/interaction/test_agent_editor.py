"""What a hub does with agents that owners make, where files and store do as they like."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub.app.agent_folder import DiskAgentFiles
from hubbub.app.supervisor import Supervisor, Unit
from hubbub.config.loader import load
from tests.interaction.peers import Networks, soon
from tests.interaction.stores import MoodyStore

NETWORK = """\
network: {name: made, auth: open, store: "sqlite::memory:"%s}
models: {default: {model: scripted, base_url: "http://127.0.0.1:9/v1"}}
"""
FOLDER = ", agent_folder: {}"


@pytest.mark.behaviour("U-17")
async def test_a_record_that_cannot_be_stored_takes_the_file_back_and_nothing_starts(
    in_memory: Networks, tmp_path: Path
) -> None:
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    loaded, file = load(config), tmp_path / "agents.d" / "rev.yaml"
    supervisor = Supervisor([], lambda event: None)  # it does not run: nothing is started
    store = MoodyStore()
    async with in_memory.start(loaded.file, store=store) as network:
        files = DiskAgentFiles(loaded, supervisor, lambda agent, token: Unit((agent,), ()))
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        store.failing = 1
        error = await ann.ask("add_agent", agent="rev", instruction="Be.")
        assert error["code"] == "store_unavailable"
        assert not file.exists()
        assert supervisor.processes() == []
        await ann.call("add_agent", agent="rev", instruction="Be.")
        assert [each.agent for each in supervisor.processes()] == ["rev"]
        before = file.read_bytes()
        for operation in ("edit_agent", "remove_agent"):
            store.failing = 1
            more = {"instruction": "Other."} if operation == "edit_agent" else {}
            error = await ann.ask(operation, agent="rev", **more)
            assert error["code"] == "store_unavailable"
            assert file.read_bytes() == before
        read = await ann.call("read_agent", agent="rev")
        assert [each["version"] for each in read["versions"]] == [1]


@pytest.mark.behaviour("U-17")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("", "no folder for agents"),
        (FOLDER + ", hosts: [news.example.org]", "others can reach this open network"),
    ],
)
async def test_agents_are_not_made_where_the_operator_has_no_folder_or_anybody_is_an_owner(
    in_memory: Networks, tmp_path: Path, settings: str, why: str
) -> None:
    (config := tmp_path / "net.yaml").write_text(NETWORK % settings)
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        choices = await ann.call("agent_choices")
        assert why in choices["refused"]
        assert (choices["agents"], choices["tools"]) == ([], [])
        error = await ann.ask("add_agent", agent="rev", instruction="Be.")
        assert error["code"] == "forbidden"
    assert load(config).file.agents == {}


@pytest.mark.behaviour("U-17")
async def test_a_disk_that_takes_neither_the_record_nor_the_file_back_stops_nothing(
    in_memory: Networks, tmp_path: Path
) -> None:
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    loaded, store = load(config), MoodyStore()
    async with in_memory.start(loaded.file, store=store) as network, soon():
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        await ann.call("add_agent", agent="rev", instruction="Be.")
        store.gate.clear()
        editing = asyncio.create_task(ann.ask("edit_agent", agent="rev", instruction="Be other."))
        await store.waiting.wait()
        (
            draft := tmp_path / "agents.d" / ".rev.yaml.tmp"
        ).mkdir()  # nothing can be written there now
        store.failing = 1
        store.gate.set()
        assert (await editing)["code"] == "store_unavailable"
        draft.rmdir()
        await ann.call("edit_agent", agent="rev", instruction="Be another.")
        assert load(config).file.agents["rev"].instruction == "Be another."


@pytest.mark.behaviour("U-17")
async def test_who_chooses_no_tools_has_those_that_the_operator_allows(
    in_memory: Networks, tmp_path: Path
) -> None:
    allowed = ["send_text_message", "read_thread"]
    (config := tmp_path / "net.yaml").write_text(
        NETWORK % f", agent_folder: {{tools: [{', '.join(allowed)}]}}"
    )
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        await ann.call("add_agent", agent="rev", instruction="Be.", tools=["read_thread"])
        error = await ann.ask("edit_agent", agent="rev", tools=["stop"])
        assert "not one of the available tools" in error["message"]
        await ann.call("edit_agent", agent="rev", tools=None)
        assert "tools" not in (await ann.call("read_agent", agent="rev"))["fields"]
        assert load(config).file.agents["rev"].tools == allowed


@pytest.mark.behaviour("U-17")
async def test_files_that_cannot_be_changed_as_people_wrote_them_say_so_and_can_be_removed(
    in_memory: Networks, tmp_path: Path
) -> None:
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    (folder := tmp_path / "agents.d").mkdir()
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        for name, more in (
            ("empty", "card:\n    daily:"),
            ("123", "greet: Hello."),  # the key is a number
            ("twice", "instruction: Be again."),
            ("other", "card: a text"),
        ):
            text = f"agents:\n  {name}:\n    instruction: Be.\n    {more}\n"
            (file := folder / f"{name}.yaml").write_text(text)
            error = await ann.ask("edit_agent", agent=name, description="It is.", daily_usd=1.0)
            assert (error["code"], file.read_text()) == ("conflict", text)
            assert f"{name}.yaml was edited by hand and cannot be changed" in error["message"]
            await ann.call("remove_agent", agent=name)  # also one that was never started
            assert not file.exists()


@pytest.mark.behaviour("U-17")
async def test_an_agent_that_is_still_being_taken_up_is_not_changed_by_others(
    in_memory: Networks, tmp_path: Path
) -> None:
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    loaded, store = load(config), MoodyStore()
    supervisor = Supervisor([], lambda event: None)
    async with in_memory.start(loaded.file, store=store) as network, soon():
        files = DiskAgentFiles(loaded, supervisor, lambda agent, token: Unit((agent,), ()))
        network.hub.services.agent_editor.files = files
        ann, bob = await network.join("ann"), await network.join("bob")
        store.gate.clear()
        adding = asyncio.create_task(ann.call("add_agent", agent="rev", instruction="Be."))
        await store.waiting.wait()
        store.waiting.clear()
        store.gate.set()  # its record goes through, its place in the network does not
        store.gate.clear()
        await store.waiting.wait()
        error = await bob.ask("remove_agent", agent="rev")
        assert error["code"] == "conflict"
        store.gate.set()
        await adding
        assert [each.agent for each in supervisor.processes()] == ["rev"]
        await bob.call("remove_agent", agent="rev")
        assert supervisor.processes() == []


@pytest.mark.behaviour("U-17")
async def test_variables_of_the_environment_are_shown_by_their_names_and_stay_in_the_file(
    in_memory: Networks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR_CODE", "4711")
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    (folder := tmp_path / "agents.d").mkdir()
    text = "agents:\n  rev:\n    instruction: The code is ${DOOR_CODE}.\n"
    (file := folder / "rev.yaml").write_text(text)
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        read = await ann.call("read_agent", agent="rev")
        assert read["fields"]["instruction"] == "The code is ${DOOR_CODE}."
        assert "4711" not in str(read)
        await ann.call("edit_agent", agent="rev", description="It opens.")
        assert file.read_text().startswith(text)
        error = await ann.ask("edit_agent", agent="rev", instruction="It was ${DOOR_CODE}.")
        assert "environment variable" in error["message"]
        assert load(config).file.agents["rev"].instruction == "The code is 4711."


@pytest.mark.behaviour("U-17")
async def test_what_is_no_text_is_shown_by_its_value_where_a_variable_says_it_and_the_rest_changes(
    in_memory: Networks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("STEPS", "7"), ("USD", "1.5"), ("MODE", "read_only")):
        monkeypatch.setenv(name, value)
    (config := tmp_path / "net.yaml").write_text(NETWORK % FOLDER)
    (folder := tmp_path / "agents.d").mkdir()
    text = (
        "agents:\n  rev:\n    instruction: Be.\n    max_steps: ${STEPS}\n"
        "    permission_mode: ${MODE:-full}\n    daily:\n      usd: ${USD}\n"
    )
    (file := folder / "rev.yaml").write_text(text)
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        fields = (await ann.call("read_agent", agent="rev"))["fields"]
        assert fields == {
            "instruction": "Be.",
            "max_steps": 7,
            "permission_mode": "read_only",
            "daily_usd": 1.5,
        }
        await ann.call("edit_agent", agent="rev", description="It reads.", max_steps=7)
        assert file.read_text().startswith(text)
        error = await ann.ask("edit_agent", agent="rev", max_steps=8)
        assert "environment variable" in error["message"]


@pytest.mark.behaviour("U-17")
async def test_agents_of_the_networks_own_file_are_changed_there_and_nothing_else_of_it(
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
    (config := tmp_path / "net.yaml").write_text(text)
    config.chmod(0o600)
    (more := tmp_path / "more.yaml").write_text("agents:\n  far:\n    instruction: Be far.\n")
    code = "class Count: ...\ndef run() -> str:\n    return ''\n"
    (tmp_path / "own.py").write_text(code)
    loaded = load(config)
    async with in_memory.start(loaded.file) as network:
        files = DiskAgentFiles(
            loaded, Supervisor([], lambda event: None), lambda a, t: Unit((a,), ())
        )
        network.hub.services.agent_editor.files = files
        ann = await network.join("ann")
        assert (await ann.call("agent_choices"))["agents"] == ["far", "one", "rev", "two"]
        await ann.call("edit_agent", agent="rev", instruction="Be blunt.", max_steps=3)
        changed = text.replace("Be.", "Be blunt.").replace(
            "read_thread]\n  one", "read_thread]\n    max_steps: 3\n  one"
        )
        assert config.read_text() == changed
        assert config.stat().st_mode & 0o777 == 0o600
        await ann.call("edit_agent", agent="far", description="Far.")
        assert load(config).file.agents["far"].card.description == "Far."
        assert "Far." in more.read_text()
        refused = [
            await ann.ask("remove_agent", agent="rev"),
            await ann.ask("edit_agent", agent="count", description="It counts."),
            await ann.ask("edit_agent", agent="two", instruction="Be two."),
            await ann.ask("edit_agent", agent="rev", tools=None),
            await ann.ask("edit_agent", agent="rev", tools=["./other.py:run"]),
        ]
        assert [each["message"] for each in refused] == [
            f"it is defined in {files.file('rev')}: remove it there and restart the network",
            "no agent named 'count' can be changed",
            f"{files.file('two')} shares parts of it with other agents: edit that file",
            "tools: its file lists its tools: choose from those that are allowed",
            "tools: './other.py:run' is not one of the available tools",
        ]
        assert config.read_text() == changed
        await ann.call("roll_back_agent", agent="rev", to=1)
        assert config.read_text() == text
        read = await ann.call("read_agent", agent="rev")
        assert [each.get("by") for each in read["versions"]] == ["ann", "ann", None]
