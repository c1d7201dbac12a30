"""Checks before a network starts."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys

import pytest

from hubbub.app.agent_checks import check_tools
from hubbub.app.import_trial import IMPORT_WITHIN_S, ImportTrial
from hubbub.app.preflight import (
    check_models,
    check_mods,
    check_port,
    load_checked,
    load_valid,
)
from hubbub.config.loader import LoadedConfig
from hubbub.config.problems import ConfigProblems
from hubbub.config.units import ListenAddress
from hubbub.errors import ConfigError, UserError
from tests.unit.conftest import Loading, Write

AGENT = "from hubbub.agents.python.agent import Agent\n"
PYTHON = "agents: {a: {kind: python, class: bot.py:Bot}}"
MODELS = "models: {default: {model: m}}\n"
CLERK = f"{MODELS}agents:\n  a:\n"
SERVERS = "mcp_servers: {shop: {url: 'http://127.0.0.1:1/mcp'}}\n"
PEOPLE = "humans: {ann: {roles: [owner]}}\n"
COUNT = "def count(text: str) -> int:\n    '''Count.'''\n    return 1\n"


def check_imports(config: LoadedConfig, within_s: float = IMPORT_WITHIN_S) -> None:
    with ImportTrial(config, within_s) as trial:
        trial.end()


def problem_of(write: Write, text: str) -> str:
    """The only problem of a config."""
    path = write("net.yaml", text)
    with pytest.raises(ConfigProblems) as caught:
        load_valid(path)
    (problem,) = caught.value.problems
    return str(problem)


def test_a_template_that_cannot_be_rendered_is_reported_before_the_start(write: Write) -> None:
    write("mine.j2", "fine\n{{ incomming_message.text }}")
    problem = problem_of(write, f"{PEOPLE}{CLERK}    template: mine.j2\n")
    assert "mine.j2:2: the template fails: 'incomming_message' is undefined" in problem


def test_a_port_in_use_or_of_another_machine_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(UserError) as caught:
            check_port(ListenAddress("127.0.0.1", port))
    assert f"127.0.0.1:{port} is in use" in str(caught.value)
    assert f"--listen 127.0.0.1:{port + 1}" in str(caught.value)
    for _ in range(2):  # the check leaves the port free
        check_port(ListenAddress("127.0.0.1", port))
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1:4820"):
        check_port(ListenAddress("192.0.2.1", 4820))


def test_an_unknown_or_repeated_mod_or_setting_of_a_mod_is_reported(
    loading: Loading, write: Write
) -> None:
    check_mods(loading("mods: [moderation]"))
    for text, message in (
        ("mods:\n  - moderation:\n      max_chars_typo: 5\n",
         "net.yaml:3: unknown key 'max_chars_typo' in mods[1].moder"),
        ("mods:\n  - moderation\n  - moderation: {}\n",
         "net.yaml:3: the mod 'moderation' is listed twice"),
    ):  # fmt: skip
        with pytest.raises(ConfigProblems) as caught:
            check_mods(loading(text))
        assert str(caught.value).startswith(message)
    with pytest.raises(ConfigError, match="unknown mod 'moderaton'; did you mean 'moderation'"):
        load_valid(write("net.yaml", "mods: [moderaton]"))


@pytest.mark.behaviour("L-3")
def test_the_name_of_an_unknown_or_unusable_tool_is_reported_with_its_line(write: Write) -> None:
    for settings, problem in (
        ("tools:\n      - reply\n      - read_thred",
         "6: agents.a.tools: there is no tool 'read_thred'; did you mean 'read_thread'?"),
        ("tools: [begin_turn]", "4: agents.a.tools: there is no tool 'begin_turn'"),
        ("disabled_tools:\n      - reply\n      - brodcast_text_message",
         "6: agents.a.disabled_tools: there is no tool 'brodcast_text_message'; "
         "did you mean 'broadcast_text_message'?"),
        ("tool_settings:\n      reply: {timeout: 5s}\n      rply: {timeout: 5s}",
         "6: agents.a.tool_settings: there is no tool 'rply'; did you mean 'reply'?"),
        ("begin_with: recal",
         "4: agents.a.begin_with: there is no tool 'recal'; did you mean 'recall'?"),
        ("permission_mode: read_only\n    begin_with: remember",
         "5: agents.a.begin_with: 'remember' changes something, which `permission_mode: "
         "read_only` forbids"),
        ("disabled_tools: [finish]",
         "4: agents.a.disabled_tools: 'finish' cannot be disabled: it is how"),
        ("disabled_tools: [fork]", "4: agents.a.disabled_tools: there is no tool 'fork'"),
    ):  # fmt: skip
        assert problem_of(write, f"{CLERK}    {settings}\n").startswith(f"net.yaml:{problem}")
    for settings in (
        "    permission_mode: read_only\n    begin_with: send_text_message\n",
        "    tools: []\n  c: {tools: [read_thread], disabled_tools: [send_text_message]}\n",
        "    tools: [post_to_channel]\n  b: {kind: router, tools: []}\n",
    ):
        load_valid(write("net.yaml", PEOPLE + CLERK + settings))


@pytest.mark.behaviour("L-3")
def test_only_operations_can_be_chosen_in_the_agent_folder_whether_it_has_agents_or_not(
    write: Write,
) -> None:
    folder = "network:\n  agent_folder:\n    tools:\n      - %s\n"
    for tool, problem in (
        ("shop.py:buy", "there is no operation 'shop.py:buy'"),
        ("read_thred", "there is no operation 'read_thred'; did you mean 'read_thread'?"),
    ):
        found = problem_of(write, folder % tool)
        assert found.startswith(f"net.yaml:4: network.agent_folder.tools: {problem}")
    for tool in ("read_thread", "finish"):
        load_valid(write("net.yaml", folder % tool))


@pytest.mark.behaviour("L-3")
def test_the_missing_extra_for_mcp_is_reported_once_with_its_line(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = "    mcp: [shop]\n  b:\n    mcp: [shop]\n"
    path = write("net.yaml", f"{SERVERS}{CLERK}{users}")
    load_valid(path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for load in (load_valid, load_checked):
        with pytest.raises(ConfigProblems) as caught:
            load(path)
        (problem,) = caught.value.problems
        assert str(problem) == (
            "net.yaml:5: agents.a.mcp: `mcp` needs an extra: pip install 'hubbub[mcp]' "
            "(in a checkout: pip install -e '.[mcp]')"
        )
    load_valid(write("net.yaml", f"{SERVERS}{CLERK}    model: default\n"))


@pytest.mark.slow  # importing the SDK of ACP takes as long as running twenty tests
@pytest.mark.behaviour("I-10")
def test_the_missing_program_or_extra_of_a_coding_agent_is_reported_with_its_line(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("acp", reason="needs the extra `acp`")
    text = "network: {auth: open, listen: '127.0.0.1:0'}\nagents:\n  a:\n    kind: acp\n"
    for command, missing in {
        "no-such-program": "no program 'no-such-program' on the PATH: install it",
        "./bin/agent": "no program './bin/agent': install it",
    }.items():
        path = write("net.yaml", f"{text}    acp: {{command: [{command}]}}\n")
        load_valid(path)
        with pytest.raises(ConfigProblems) as caught:
            load_checked(path)
        assert str(caught.value) == f"net.yaml:5: agents.a.acp.command: there is {missing}"
    path = write("net.yaml", f"{text}    acp: {{command: [sh]}}\n")
    load_checked(path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigProblems, match=r"net.yaml:4: agents.a: `acp` needs an extra"):
        load_valid(path)


@pytest.mark.behaviour("L-10")
def test_the_error_about_a_missing_api_key_names_the_key_and_a_remedy(
    loading: Loading, write: Write
) -> None:
    with pytest.raises(UserError) as caught:
        check_models(loading("models: {default: {model: gpt-5-mini}}\nagents: {a: {}, b: {}}\n"))
    text = str(caught.value)
    assert text.startswith("net.yaml needs a model")
    assert "OPENAI_API_KEY" in text
    assert "hubbub init" in text
    assert "\n" not in text
    for more in ("api_key: k", "base_url: 'http://127.0.0.1:11434/v1'"):
        check_models(loading(f"models: {{default: {{model: m, {more}}}}}\nagents: {{a: {{}}}}\n"))
    write("bot.py", AGENT + "class Bot(Agent): ...\n")
    check_models(loading(MODELS + PYTHON))  # no agent uses the model
    path = write("net.yaml", f"{MODELS}agents: {{a: {{}}}}\n")
    assert load_valid(path).file.agents["a"].model == "default"
    with pytest.raises(UserError, match="needs a model"):
        load_checked(path)  # only a network that starts needs the key


def test_overrides_apply_before_the_checks(write: Write) -> None:
    path = write("net.yaml", "network: {auth: open}")
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(UserError, match="in use"):
            load_checked(path, {"listen": taken})
    assert load_checked(path, {"listen": "127.0.0.1:0"}).address.port == 0


# Python of agents ---------------------------------------------------------------------------------


def test_any_tool_name_is_accepted_while_functions_are_not_imported(
    loading: Loading, write: Write
) -> None:
    write("tools.py", COUNT)
    names = "    tools: [tools.py:count, reply]\n    disabled_tools: [anything]\n"
    check_tools(loading(CLERK + names))


def test_no_process_starts_for_a_config_without_python(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    check_imports(loading(f"{MODELS}agents: {{a: {{}}}}\n"))


@pytest.mark.slow
@pytest.mark.behaviour("O-10")
def test_settings_can_name_tools_from_functions_and_mcp_servers(write: Write) -> None:
    source = "from hubbub import tool\n@tool(name='weigh', permission='write')\n"
    write("tools.py", f"{source}def scales(kg: int) -> int:\n    '''Weigh.'''\n    return kg\n")
    clerk = (
        "    tools: [tools.py:scales, finish, reply]\n    mcp: [shop]\n    begin_with: weigh\n"
        "    disabled_tools: [shop_x]\n"
        "    tool_settings: {weigh: {timeout: 5s}, shop_buy: {confirm: true}}\n"
    )
    reader = f"  b:\n{clerk}    permission_mode: read_only\n"
    right = clerk + reader.replace("{timeout: 5s}", "{permission: read}")
    file = load_valid(write("net.yaml", f"{PEOPLE}{SERVERS}{CLERK}{right}")).file
    assert file.agents["a"].begin_with == "weigh"
    wrong = clerk.replace("{weigh:", "{scales:") + reader
    with pytest.raises(ConfigProblems) as caught:
        load_valid(write("net.yaml", f"{PEOPLE}{SERVERS}{CLERK}{wrong}"))
    name, mode = map(str, caught.value.problems)
    assert "no tool 'scales'" in name
    denied = "agents.b.begin_with: 'weigh' changes something, which `permission_mode: read_only`"
    assert denied in mode


@pytest.mark.slow
@pytest.mark.behaviour("L-3")
def test_an_agent_class_that_cannot_be_imported_is_reported_with_its_exception(
    loading: Loading, write: Write
) -> None:
    write("helper.py", "VALUE = 1\n")
    write("bot.py", AGENT + "import helper\nprint('hello')\nclass Bot(Agent): ...\n")
    write("tools.py", COUNT)
    clerk = "  b: {tools: [tools.py:count]}\n"
    check_imports(loading(f"{MODELS}agents:\n  a: {{kind: python, class: bot.py:Bot}}\n{clerk}"))
    # Nothing is imported after the file that ends the process.
    cases = (
        ("Bot = 1\n1 / 0\n", ":2: importing it raises ZeroDivisionError: division by zero"),
        ("import gone_module as Bot\n", ":1: importing it raises ModuleNotFoundError"),
        ("raise SystemExit(3)\nBot = 1\n", ":1: importing it raises SystemExit: 3"),
        ("class Bot: ...\n", ": Bot is not a subclass of hubbub.Agent"),
        ("def Bot(): ...\n", ": Bot is not a subclass of hubbub.Agent"),
        (
            f"{AGENT}class Bot(Agent):\n    async def on_dircet(self, message): ...\n",
            ": Bot has the handler 'on_dircet', which nothing calls; did you mean on_direct?",
        ),
        ("if 1:\n    Boot = 1\n", ": there is no 'Bot' in it"),
        ("import os\nos._exit(0)\nclass Bot: ...\n", " ends the process that imports it"),
        ("raise ValueError('never imported')\nBot = 1\n", ""),
    )
    text = "agents:\n"
    for n, (code, _) in enumerate(cases):
        write(f"bot{n}.py", code)
        text += f"  a{n}: {{kind: python, class: bot{n}.py:Bot}}\n"
    with pytest.raises(ConfigProblems) as caught:
        check_imports(loading(text))
    problems = [str(problem) for problem in caught.value.problems]
    for n, (problem, (_, expected)) in enumerate(zip(problems, cases[:-1], strict=True)):
        assert problem.startswith(f"net.yaml:{n + 2}: bot{n}.py{expected}")
    # A pytest worker has threads and imports in a new process, a command in a copy of itself.
    command = [sys.executable, "-m", "hubbub", "network", "check", "net.yaml", "--json"]
    output = subprocess.run(command, capture_output=True, check=False).stdout
    messages = [problem["message"] for problem in json.loads(output)]
    assert messages == [problem.message for problem in caught.value.problems]


@pytest.mark.slow
def test_other_work_runs_while_the_python_is_imported(write: Write) -> None:
    path = write("net.yaml", PYTHON)
    fifo = path.parent / "fifo"
    os.mkfifo(fifo)
    write("bot.py", f"{AGENT}open({str(fifo)!r}).read()\nclass Bot(Agent): ...\n")
    # Opening either end of the FIFO blocks until the other one is opened.
    assert load_valid(path, meanwhile=lambda: fifo.open("w").close()).path == path


@pytest.mark.slow
def test_an_invalid_function_or_hook_is_reported(loading: Loading, write: Write) -> None:
    write("tools.py", "five = 5\ndef count(text) -> int:\n    '''Count.'''\n    return 1\n")
    write("rules.py", "from hubbub import Hooks\nclass A(Hooks): ...\nclass B: ...\n")
    cases = (
        ("tools: [tools.py:five]", "tools.py: five is not a function"),
        ("tools: [tools.py:count]", "tools.py: count cannot be a tool: "),
        ("hooks: [rules.py:A, rules.py:B]", "rules.py: B is not a subclass of hubbub.Hooks"),
    )
    agents = "".join(f"  a{n}: {{{agent}}}\n" for n, (agent, _) in enumerate(cases))
    with pytest.raises(ConfigProblems) as caught:
        check_imports(loading(f"{MODELS}agents:\n{agents}"))
    for problem, (_, expected) in zip(caught.value.problems, cases, strict=True):
        assert expected in str(problem)


@pytest.mark.slow
def test_an_import_that_hangs_is_reported(loading: Loading, write: Write) -> None:
    write("bot.py", "import time\ntime.sleep(60)\nBot = 1\n")
    with pytest.raises(ConfigProblems, match=r"bot\.py was not imported within 1 s"):
        check_imports(loading(PYTHON), within_s=1.0)
