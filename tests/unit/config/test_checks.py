"""What a schema cannot say."""

from __future__ import annotations

import pytest

from tests.unit.config.conftest import Loading, Problems, Write

MODELS = "models: {default: {model: m}, small: {model: s}}\n"


@pytest.mark.behaviour("D-3")
@pytest.mark.parametrize("name", ["hub", "operator", "broadcast", "all", "everyone", "here"])
@pytest.mark.parametrize("section", ["agents", "humans"])
def test_reserved_names_are_refused(problems: Problems, name: str, section: str) -> None:
    found = problems(f"{MODELS}{section}:\n  {name}: {{}}\n")
    assert len(found) == 1
    assert found[0].startswith(f"net.yaml:3: '{name}' is reserved (all, broadcast, everyone,")


def test_names_that_read_like_reply_threads_are_refused(problems: Problems) -> None:
    assert problems("humans: {t5: {}}") == [
        "net.yaml:1: 't5' is taken by threads (t1, t2, … and direct_…, channel_…, mod_… are): "
        "choose another name"
    ]


def test_channels_that_read_like_threads_are_refused(problems: Problems) -> None:
    assert problems("channels: {channel_desk: {}, desk: {}}") == [
        "net.yaml:1: 'channel_desk' reads like a thread's id (direct_…, channel_…, mod_… do): "
        "choose another name"
    ]


@pytest.mark.behaviour("L-3")
def test_an_agent_and_a_human_cannot_share_a_name(problems: Problems) -> None:
    assert problems(f"{MODELS}agents:\n  ann: {{}}\nhumans:\n  ann: {{}}\n") == [
        "net.yaml:5: 'ann' is an agent already (line 3): a participant has one name of its own"
    ]


def test_an_agent_that_is_there_twice_is_refused(problems: Problems) -> None:
    assert problems(f"{MODELS}agents:\n  ann: {{}}\n  ann: {{}}\n") == [
        "net.yaml:4: 'ann' is there twice (first in line 3)"
    ]


@pytest.mark.behaviour("L-3")
def test_an_unknown_model_is_answered_with_the_nearest(problems: Problems) -> None:
    assert problems(f"{MODELS}agents:\n  ann:\n    model: smal\n") == [
        "net.yaml:4: agents.ann uses the unknown model 'smal'; did you mean 'small'?"
    ]


def test_an_llm_agent_without_any_models_is_told_where_to_get_one(problems: Problems) -> None:
    assert problems("agents:\n  ann: {}\n") == [
        "net.yaml:2: agents.ann names no model, and there is no 'default'; "
        "add a section models: (`hubbub doctor` proposes one)"
    ]


def test_a_model_whose_name_is_a_missing_variable_is_told_once(problems: Problems) -> None:
    found = problems(f"{MODELS}agents:\n  ann: {{model: '${{WHICH}}'}}\n")
    assert len(found) == 1
    assert "variable WHICH is not set" in found[0]


def test_an_unknown_mod_is_answered_with_the_nearest(problems: Problems) -> None:
    assert problems("mods:\n  - moderation\n  - moderatoin\n") == [
        "net.yaml:3: unknown mod 'moderatoin'; did you mean 'moderation'?"
    ]


def test_an_unknown_mod_with_settings_is_told_too(problems: Problems) -> None:
    assert problems("mods: [{files: {}}]") == ["net.yaml:1: unknown mod 'files'; valid: moderation"]


def test_a_mod_has_one_name(problems: Problems) -> None:
    assert problems("mods: [{moderation: {}, x: {}}]")[0] == (
        "net.yaml:1: a mod is its name, or its name with its settings below"
    )


def test_members_of_channels_exist(problems: Problems) -> None:
    text = "humans: {ann: {}}\nchannels:\n  desk:\n    members: [ann, anne]\n"
    assert problems(text) == [
        "net.yaml:4: channel 'desk' has the member 'anne', which is neither in agents nor in "
        "humans; did you mean 'ann'?"
    ]


@pytest.mark.behaviour("D-6")
@pytest.mark.parametrize("listen", ["0.0.0.0:4820", "192.168.0.7:1", "[::]:4820", "hub.lan:4820"])
def test_an_open_network_that_others_can_reach_is_refused_with_what_to_do(
    problems: Problems, listen: str
) -> None:
    found = problems(f'network:\n  auth: open\n  listen: "{listen}"\n')
    assert len(found) == 1
    assert found[0].startswith(f"net.yaml:3: {listen} can be reached from other machines")
    assert "set `auth: tokens`" in found[0]
    assert "127.0.0.1:" in found[0]


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "localhost:1", "[::1]:1"])
def test_an_open_network_may_listen_on_loopback(loading: Loading, listen: str) -> None:
    assert loading(f'network: {{auth: open, listen: "{listen}"}}').file.network.auth == "open"


def test_a_network_with_tokens_may_listen_anywhere(loading: Loading) -> None:
    assert loading("network: {listen: '0.0.0.0:4820'}").address.port == 4820


def test_an_override_cannot_open_a_network_to_others(problems: Problems) -> None:
    found = problems("network: {auth: open}", overrides={"listen": "0.0.0.0:4820"})
    assert "can be reached from other machines" in found[0]


def test_a_bad_listen_address_is_told_with_an_example(problems: Problems) -> None:
    assert problems("network:\n  listen: localhost\n") == [
        "net.yaml:2: 'localhost' is no address: expected host:port, for example 127.0.0.1:4820"
    ]


def test_nothing_is_said_about_an_address_whose_variable_is_missing(problems: Problems) -> None:
    assert len(problems('network: {listen: "${LISTEN}"}')) == 1


@pytest.mark.parametrize("store", ["postgres://x", "hubbub.db", "sqlite:"])
def test_a_store_of_another_kind_is_refused(problems: Problems, store: str) -> None:
    found = problems(f'network: {{store: "{store}"}}')
    assert len(found) == 1
    assert found[0].endswith("is no store: expected sqlite:<file> or sqlite::memory:")


def test_a_store_in_a_folder_that_is_not_there_is_refused(problems: Problems) -> None:
    assert problems("network: {store: sqlite:data/x.db}") == [
        "net.yaml:1: the folder data of the store does not exist"
    ]


def test_a_python_agent_needs_a_class(problems: Problems) -> None:
    assert problems("agents:\n  a: {kind: python}\n") == [
        "net.yaml:2: agents.a is a python agent: it needs the key 'class'"
    ]


def test_a_class_without_the_kind_is_told_what_is_missing(problems: Problems) -> None:
    assert problems("agents:\n  a: {class: x.py:X}\n") == [
        "net.yaml:2: agents.a has a class: add `kind: python`"
    ]


def test_a_class_file_that_is_not_there_is_answered_with_the_nearest(
    problems: Problems, write: Write
) -> None:
    write("bots/calculator.py", "class Calculator: ...\n")
    assert problems("agents: {a: {kind: python, class: bots/calculater.py:Calculator}}") == [
        "net.yaml:1: the file bots/calculater.py does not exist; did you mean 'calculator.py'?"
    ]
    assert problems("agents: {a: {kind: python, class: nowhere/x.py:X}}") == [
        "net.yaml:1: the file nowhere/x.py does not exist"
    ]


def test_a_class_that_the_file_does_not_define_is_answered_with_the_nearest(
    problems: Problems, write: Write
) -> None:
    write("bot.py", "import json\nfrom os import path as p\nclass Calculator: ...\nX = Y = 1\n")
    assert problems("agents: {a: {kind: python, class: bot.py:Calculater}}") == [
        "net.yaml:1: bot.py defines no 'Calculater'; did you mean 'Calculator'?"
    ]


def test_a_class_may_be_imported_assigned_or_made_by_running_the_file(
    loading: Loading, write: Write
) -> None:
    write("one.py", "from other import Bot\nAlso = Bot\nThird: type = Bot\n")
    write("two.py", "if True:\n    class Bot: ...\n")
    write("three.py", "from other import *\n")
    specs = ["one.py:Bot", "one.py:Also", "one.py:Third", "two.py:Bot", "three.py:Bot"]
    agents = ", ".join(f"a{n}: {{kind: python, class: '{s}'}}" for n, s in enumerate(specs))
    assert len(loading(f"agents: {{{agents}}}").file.agents) == 5


def test_a_class_file_with_a_syntax_error_is_told_with_its_line(
    problems: Problems, write: Write
) -> None:
    write("bot.py", "x = 1\nclass Bot\n")
    found = problems("agents: {a: {kind: python, class: bot.py:Bot}}")
    assert found == ["net.yaml:1: bot.py:2 is not valid Python: expected ':'"]


def test_a_class_file_that_is_no_text_is_one_sentence(problems: Problems, write: Write) -> None:
    write("bot.py", "x = 1").write_bytes(b"x = '\x00'\n")
    found = problems("agents: {a: {kind: python, class: bot.py:Bot}}")
    assert len(found) == 1
    assert found[0].startswith("net.yaml:1: ")
    assert "bot.py" in found[0]


@pytest.mark.parametrize(
    "spec", ["Calculator", "bot.py", "bot:Calculator", "bot.py:", "bot.py:a-b"]
)
def test_a_class_is_named_by_file_and_name(problems: Problems, spec: str) -> None:
    assert problems(f"agents: {{a: {{kind: python, class: '{spec}'}}}}") == [
        f"net.yaml:1: '{spec}' is not of the form file.py:ClassName"
    ]


def test_hooks_exist(problems: Problems, write: Write) -> None:
    write("rules.py", "class Rules: ...\n")
    text = "models: {default: {model: m}}\nagents: {a: {hooks: [HOOK]}}\n"
    assert problems(text.replace("HOOK", "rules.py:Rule")) == [
        "net.yaml:2: rules.py defines no 'Rule'; did you mean 'Rules'?"
    ]
    assert problems(text.replace("HOOK", "rules")) == [
        "net.yaml:2: 'rules' is not of the form file.py:ClassName"
    ]


def test_tools_from_files_exist(problems: Problems, write: Write) -> None:
    write("tools.py", "def word_count(text: str) -> int: ...\nasync def fetch() -> None: ...\n")
    text = f"""{MODELS}
agents:
  a:
    tools:
      - read_thread
      - tools.py:word_count
      - tools.py:fetch
      - tools.py:wordcount
      - gone.py:x
"""
    assert problems(text) == [
        "net.yaml:9: tools.py defines no 'wordcount'; did you mean 'word_count'?",
        "net.yaml:10: the file gone.py does not exist",
    ]


def test_a_template_that_is_not_there_is_told(problems: Problems) -> None:
    assert problems(f"{MODELS}agents: {{a: {{template: t.j2}}}}") == [
        "net.yaml:2: the template t.j2 does not exist"
    ]


def test_checks_find_their_mistakes_beside_those_of_the_schema(problems: Problems) -> None:
    text = """
network: {listen: nowhere, auth: opne}
channels: {c: {members: [bob]}, d: 5}
mods: [nope, 5]
agents: {hub: {kind: python, clas: x}, e: {model: 5}}
"""
    found = problems(text)
    for words in ("no address", "'opne'", "'bob'", "channels.d", "'nope'", "mods[2]", "reserved"):
        assert any(words in line for line in found), words
    assert sum("clas" in line for line in found) == 1


def test_hosts_are_names_as_in_a_url_and_nothing_more(problems: Problems, loading: Loading) -> None:
    text = "network: {hosts: [https://hub.example.org/, '*.example.org', hub.example.org:8443]}"
    assert problems(text) == [
        "net.yaml:1: network.hosts[1] is 'https://hub.example.org/': expected a host such as "
        "newsroom.example.org, or host:port",
        "net.yaml:1: network.hosts[2] is '*.example.org': expected a host such as "
        "newsroom.example.org, or host:port",
    ]
    assert loading("network: {hosts: [Hub.Example.org]}").file.network.hosts == ["hub.example.org"]
