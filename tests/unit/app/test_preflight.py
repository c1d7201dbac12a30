"""What is found out before anything is started."""

from __future__ import annotations

import importlib.util
import socket

import pytest

from hubbub.app.preflight import (
    check_imports,
    check_models,
    check_mods,
    check_port,
    check_tools,
    load_checked,
    load_valid,
)
from hubbub.config.address import Address
from hubbub.config.problems import ConfigProblems
from hubbub.errors import ConfigError, UserError
from tests.unit.app.conftest import Loading, Write

AGENT = "from hubbub.agents.python.agent import Agent\n"
PYTHON = "agents: {a: {kind: python, class: bot.py:Bot}}"


def test_a_free_port_is_fine_and_free_afterwards() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    check_port(Address("127.0.0.1", port))
    check_port(Address("127.0.0.1", port))


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(UserError) as caught:
            check_port(Address("127.0.0.1", port))
    assert f"127.0.0.1:{port} is in use" in str(caught.value)
    assert f"--listen 127.0.0.1:{port + 1}" in str(caught.value)


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1:4820"):
        check_port(Address("192.0.2.1", 4820))


def test_settings_of_a_mod_are_checked_in_their_place(loading: Loading) -> None:
    config = loading("mods:\n  - moderation:\n      max_chars_typo: 5\n")
    with pytest.raises(ConfigProblems) as caught:
        check_mods(config)
    assert str(caught.value).startswith("net.yaml:3: unknown key 'max_chars_typo' in mods[1].moder")


def test_a_mod_that_is_listed_twice_is_told(loading: Loading) -> None:
    with pytest.raises(ConfigProblems, match=r"net\.yaml:3: the mod 'moderation' is listed twice"):
        check_mods(loading("mods:\n  - moderation\n  - moderation: {}\n"))


def test_known_mods_with_good_settings_pass(loading: Loading) -> None:
    check_mods(loading("mods: [moderation]"))


def test_an_unknown_tool_is_answered_with_the_nearest(loading: Loading) -> None:
    config = loading(
        "models: {default: {model: m}}\n"
        "agents:\n  a:\n    tools:\n      - reply\n      - read_thred\n"
    )
    with pytest.raises(ConfigProblems) as caught:
        check_tools(config)
    assert str(caught.value) == (
        "net.yaml:6: agents.a.tools: there is no tool 'read_thred'; did you mean 'read_thread'?"
    )


def test_operations_for_programs_are_no_tools(loading: Loading) -> None:
    config = loading("models: {default: {model: m}}\nagents: {a: {tools: [begin_turn]}}\n")
    with pytest.raises(ConfigProblems, match="there is no tool 'begin_turn'"):
        check_tools(config)


CLERK = "models: {default: {model: m}}\nagents:\n  a:\n"


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("given", "line", "told"),
    [
        (
            "disabled_tools:\n      - reply\n      - brodcast_text_message",
            6,
            "disabled_tools: there is no tool 'brodcast_text_message'; "
            "did you mean 'broadcast_text_message'?",
        ),
        (
            "tool_settings:\n      reply: {timeout: 5s}\n      rply: {timeout: 5s}",
            6,
            "tool_settings: there is no tool 'rply'; did you mean 'reply'?",
        ),
        ("begin_with: recal", 4, "begin_with: there is no tool 'recal'; did you mean 'recall'?"),
        (
            "permission_mode: read_only\n    begin_with: remember",
            5,
            "begin_with: 'remember' changes something, which `permission_mode: read_only` forbids",
        ),
        ("disabled_tools: [finish]", 4, "disabled_tools: 'finish' cannot be disabled: it is how"),
        ("disabled_tools: [fork]", 4, "disabled_tools: there is no tool 'fork'"),
    ],
)
def test_misspelled_names_of_tools_are_told_with_their_line(
    write: Write, given: str, line: int, told: str
) -> None:
    path = write("net.yaml", f"{CLERK}    {given}\n")
    with pytest.raises(ConfigProblems) as caught:
        load_valid(path)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"net.yaml:{line}: agents.a.{told}")


@pytest.mark.behaviour("L-3")
def test_the_missing_extra_of_mcp_is_told_once_with_its_line(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = "mcp_servers: {shop: {url: 'http://127.0.0.1:1/mcp'}}\n"
    users = "    mcp: [shop]\n  b:\n    mcp: [shop]\n"
    path = write("net.yaml", f"{servers}{CLERK}{users}")
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
    load_valid(write("net.yaml", f"{servers}{CLERK}    model: default\n"))


@pytest.mark.slow
def test_tools_of_the_agents_own_functions_and_of_mcp_servers_may_be_named(write: Write) -> None:
    write(
        "tools.py",
        "from hubbub import tool\n"
        "@tool(name='weigh')\ndef scales(kg: int) -> int:\n    '''Weigh.'''\n    return kg\n",
    )
    servers = "mcp_servers: {shop: {url: 'http://127.0.0.1:1/mcp'}}\n"
    agent = "    tools: [tools.py:scales, finish, reply]\n    mcp: [shop]\n    begin_with: weigh\n"
    settings = "    tool_settings: {weigh: {timeout: 5s}, shop_buy: {confirm: true}}\n"
    people = "humans: {ann: {roles: [owner]}}\n"
    disabled = "    disabled_tools: [shop_x]\n"
    path = write("net.yaml", people + servers + CLERK + agent + settings + disabled)
    assert load_valid(path).file.agents["a"].begin_with == "weigh"
    with pytest.raises(ConfigProblems, match=r"no tool 'scales'"):
        load_valid(write("net.yaml", path.read_text().replace("{weigh:", "{scales:")))


def test_without_a_look_at_the_functions_any_name_may_be_theirs(
    loading: Loading, write: Write
) -> None:
    write("tools.py", "def count(text: str) -> int:\n    '''Count.'''\n    return 1\n")
    check_tools(
        loading(f"{CLERK}    tools: [tools.py:count, reply]\n    disabled_tools: [anything]\n")
    )


@pytest.mark.slow
@pytest.mark.behaviour("O-10")
def test_a_turn_cannot_begin_with_a_function_that_the_mode_forbids(write: Write) -> None:
    source = "from hubbub import tool\n@tool(permission='write')\ndef put(x: int) -> int:\n"
    write("tools.py", f"{source}    '''Put.'''\n    return x\n")
    agent = (
        "    permission_mode: read_only\n    tools: [tools.py:put, reply]\n    begin_with: put\n"
    )
    path = write("net.yaml", CLERK + agent)
    with pytest.raises(ConfigProblems) as caught:
        load_valid(path)
    (problem,) = caught.value.problems
    assert str(problem) == (
        "net.yaml:6: agents.a.begin_with: 'put' changes something, "
        "which `permission_mode: read_only` forbids"
    )
    load_valid(write("net.yaml", f"{CLERK}{agent}    tool_settings: {{put: {{permission: read}}}}"))


def test_a_turn_may_begin_with_speaking_in_every_mode(write: Write) -> None:
    agent = "    permission_mode: read_only\n    begin_with: send_text_message\n"
    load_valid(write("net.yaml", CLERK + agent))


@pytest.mark.slow
def test_a_function_that_cannot_be_a_tool_is_told(loading: Loading, write: Write) -> None:
    write("tools.py", "def count(text) -> int:\n    '''Count.'''\n    return 1\n")
    with pytest.raises(ConfigProblems, match=r"tools\.py: count cannot be a tool: .*annotation"):
        check_imports(loading(f"{CLERK}    tools: [tools.py:count]\n"))


@pytest.mark.behaviour("L-10")
def test_without_a_key_one_sentence_says_what_is_missing_and_what_works(loading: Loading) -> None:
    config = loading("models: {default: {model: gpt-5-mini}}\nagents: {a: {}, b: {}}\n")
    with pytest.raises(UserError) as caught:
        check_models(config)
    text = str(caught.value)
    assert text.startswith("net.yaml needs a model")
    assert "OPENAI_API_KEY" in text
    assert "hubbub up configs/quickstart.yaml" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "model", ["{model: m, api_key: k}", "{model: m, base_url: 'http://127.0.0.1:11434/v1'}"]
)
def test_a_key_or_another_endpoint_is_enough(loading: Loading, model: str) -> None:
    check_models(loading(f"models: {{default: {model}}}\nagents: {{a: {{}}}}\n"))


def test_a_model_that_nobody_uses_needs_no_key(loading: Loading, write: Write) -> None:
    write("bot.py", AGENT + "class Bot(Agent): ...\n")
    check_models(loading("models: {default: {model: m}}\n" + PYTHON))


@pytest.mark.slow
def test_python_that_can_be_imported_passes(loading: Loading, write: Write) -> None:
    write("helper.py", "VALUE = 1\n")
    write("bot.py", AGENT + "import helper\nprint('hello')\nclass Bot(Agent): ...\n")
    write("tools.py", "def count(text: str) -> int:\n    '''Count.'''\n    return 1\n")
    check_imports(
        loading(
            "models: {default: {model: m}}\n"
            "agents:\n  a: {kind: python, class: bot.py:Bot}\n  b: {tools: [tools.py:count]}\n"
        )
    )


def test_nothing_is_started_when_there_is_no_python(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    check_imports(loading("models: {default: {model: m}}\nagents: {a: {}}\n"))


@pytest.mark.slow
@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Bot = 1\n1 / 0\n", "bot.py:2: importing it raises ZeroDivisionError: division by zero"),
        ("import gone_module as Bot\n", "bot.py:1: importing it raises ModuleNotFoundError"),
        ("raise SystemExit(3)\nBot = 1\n", "bot.py:1: importing it raises SystemExit: 3"),
        ("import os\nos._exit(0)\nclass Bot: ...\n", "bot.py ends the process that imports it"),
        ("class Bot: ...\n", "bot.py: Bot is no subclass of hubbub.Agent"),
        ("def Bot(): ...\n", "bot.py: Bot is no subclass of hubbub.Agent"),
        ("if 1:\n    Boot = 1\n", "bot.py: there is no 'Bot' in it"),
    ],
)
def test_python_that_cannot_be_used_is_told_with_file_line_and_exception(
    loading: Loading, write: Write, code: str, expected: str
) -> None:
    write("bot.py", code)
    with pytest.raises(ConfigProblems) as caught:
        check_imports(loading("# a comment\n" + PYTHON))
    assert str(caught.value).startswith(f"net.yaml:2: {expected}")


@pytest.mark.slow
def test_a_tool_that_is_no_function_is_told(loading: Loading, write: Write) -> None:
    write("tools.py", "count = 5\n")
    config = loading("models: {default: {model: m}}\nagents: {a: {tools: [tools.py:count]}}\n")
    with pytest.raises(ConfigProblems, match=r"tools\.py: count is no function"):
        check_imports(config)


@pytest.mark.slow
def test_hooks_that_are_none_are_told(loading: Loading, write: Write) -> None:
    write(
        "rules.py",
        "from hubbub import Hooks\nclass A(Hooks): ...\nclass B: ...\n",
    )
    config = loading(
        "models: {default: {model: m}}\nagents: {a: {hooks: [rules.py:A, rules.py:B]}}\n"
    )
    with pytest.raises(ConfigProblems) as caught:
        check_imports(config)
    assert str(caught.value).endswith("rules.py: B is no subclass of hubbub.Hooks")


@pytest.mark.slow
def test_all_agents_are_tried_up_to_one_that_ends_the_process(
    loading: Loading, write: Write
) -> None:
    write("one.py", "raise ValueError('first')\nBot = 1\n")
    write("two.py", "import os\nos._exit(1)\nBot = 1\n")
    write("three.py", "raise ValueError('never tried')\nBot = 1\n")
    agents = "".join(
        f"  {n}: {{kind: python, class: {n}.py:Bot}}\n" for n in ("one", "two", "three")
    )
    with pytest.raises(ConfigProblems) as caught:
        check_imports(loading(f"agents:\n{agents}"))
    assert [problem.line for problem in caught.value.problems] == [2, 3]


@pytest.mark.slow
def test_an_import_that_does_not_end_is_told(loading: Loading, write: Write) -> None:
    write("bot.py", "import time\ntime.sleep(60)\nBot = 1\n")
    with pytest.raises(ConfigProblems, match=r"bot\.py is not imported after 1 s"):
        check_imports(loading(PYTHON), within_s=1.0)


def test_a_valid_config_may_lack_what_only_running_needs(write: Write) -> None:
    path = write("net.yaml", "models: {default: {model: m}}\nagents: {a: {}}\n")
    assert load_valid(path).file.agents["a"].model == "default"
    with pytest.raises(UserError, match="needs a model"):
        load_checked(path)


def test_a_config_is_checked_against_the_mods_that_exist(write: Write) -> None:
    with pytest.raises(ConfigError, match="unknown mod 'moderaton'; did you mean 'moderation'"):
        load_valid(write("net.yaml", "mods: [moderaton]"))


def test_overrides_count_for_the_checks(write: Write) -> None:
    path = write("net.yaml", "network: {auth: open}")
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(UserError, match="in use"):
            load_checked(path, {"listen": taken})
    assert load_checked(path, {"listen": "127.0.0.1:0"}).address.port == 0


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("tools: []", "5: agents.a.tools: no tool is left with which the agent can answer: add it"),
        ("tools: [read_thread, show_plan]", "5: agents.a.tools: no tool is left"),
        (
            "tools: [send_text_message]\n    disabled_tools: [send_text_message]",
            "6: agents.a.disabled_tools: no tool is left with which the agent can answer: take it",
        ),
    ],
)
def test_an_agent_that_could_never_answer_is_refused_with_the_remedy(
    write: Write, given: str, told: str
) -> None:
    path = write("net.yaml", f"humans: {{ann: {{}}}}\n{CLERK}    {given}\n")
    with pytest.raises(ConfigProblems) as caught:
        load_valid(path)
    assert f"net.yaml:{told}" in str(caught.value)
    assert "send_text_message" in str(caught.value)


def test_agents_that_answer_by_any_tool_or_as_a_role_pass(write: Write) -> None:
    tools = "    tools: [post_to_channel]\n  b: {kind: router, tools: []}\n"
    load_valid(write("net.yaml", f"humans: {{ann: {{}}}}\n{CLERK}{tools}"))
