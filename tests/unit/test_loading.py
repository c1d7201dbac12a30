"""Python files named by a config: resolved, imported, or refused with the failing line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub import Agent
from hubbub.agents.launch import load_agent_class
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError
from hubbub.loading import construct, load_attribute


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_resolved_relative_to_the_config_and_imported_once(tmp_path: Path) -> None:
    write(tmp_path, "agents/one.py", "class One:\n    pass\n\nclass Two:\n    pass\n")
    one = load_attribute("agents/one.py:One", tmp_path)
    two = load_attribute("agents/one.py:Two", tmp_path)
    assert isinstance(one, type)
    assert isinstance(two, type)
    assert one.__module__ == two.__module__
    assert load_attribute("agents/one.py:One", tmp_path) is one


def test_a_neighbouring_file_does_not_shadow_a_library(tmp_path: Path) -> None:
    for name in ("sched", "openai"):
        write(tmp_path, f"{name}.py", "raise SystemExit('not meant')\n")
    write(tmp_path, "planner.py", "import openai, sched\n\nVALUE = sched.scheduler\n")
    assert load_attribute("planner.py:VALUE", tmp_path)


def test_a_missing_file_or_name_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    write(tmp_path, "calculator.py", "from pathlib import Path\n\nclass Calculator:\n    pass\n")
    write(tmp_path, "agent.txt", "")
    form = r"not of the form file\.py:name"
    for place, message in (
        *((wrong, form) for wrong in ("agents.py", "agents.py:", ":Name", "agents.py:not a name")),
        ("calculater.py:Calculator", r"does not exist; did you mean calculator\.py\?"),
        ("agentz/a.py:A", "nor does the folder agentz"),
        ("agent.txt:A", "not a Python file"),
        ("calculator.py:Calculater", r"no 'Calculater' in it; did you mean Calculator\?"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            load_attribute(place, tmp_path)
        assert message == form or caught.value.path == tmp_path / place.partition(":")[0], place


def test_an_import_error_is_reported_with_type_message_and_line(
    tmp_path: Path,
) -> None:
    for n, (text, line, message) in enumerate(
        (
            ("x = 1\ny = {}['key']\n", 2, "KeyError: 'key'"),
            ("x = 1\n\ndef broken(:\n", 3, "SyntaxError: invalid syntax"),
            ("import nothing_of_that_name\n", 1, "ModuleNotFoundError: No module named"),
            ("def f():\n    raise RuntimeError\n\nf()\n", 2, "RuntimeError$"),
            ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError"),
            ("raise SystemExit('bye')\n", 1, "SystemExit: bye"),
        )
    ):
        path = write(tmp_path, f"broken{n}.py", text)
        with pytest.raises(ConfigError, match=f"importing it raises {message}") as caught:
            load_attribute(f"{path.name}:A", tmp_path)
        assert (caught.value.path, caught.value.line) == (path, line), text


def test_a_fixed_file_is_imported_again(tmp_path: Path) -> None:
    write(tmp_path, "mended.py", "1 / 0\n")
    with pytest.raises(ConfigError):
        load_attribute("mended.py:VALUE", tmp_path)
    write(tmp_path, "mended.py", "VALUE = 'longer than before'\n")
    assert load_attribute("mended.py:VALUE", tmp_path) == "longer than before"


class TestAgentClass:
    def load(self, folder: Path, place: str | None) -> type[Agent]:
        config = AgentConfig.model_validate({"kind": "python", "class": place})
        return load_agent_class(config, folder)

    def test_only_a_subclass_of_agent_is_loaded(self, tmp_path: Path) -> None:
        text = "from hubbub import Agent\n\nclass Echo(Agent):\n    pass\n"
        write(tmp_path, "e.py", f"{text}\nclass Other:\n    pass\n\ndef make():\n    pass\n")
        assert issubclass(self.load(tmp_path, "e.py:Echo"), Agent)
        for name in ("Other", "make"):
            with pytest.raises(ConfigError, match=r"no subclass of hubbub\.Agent"):
                self.load(tmp_path, f"e.py:{name}")
        with pytest.raises(ConfigError, match="needs `class"):
            self.load(tmp_path, None)

    def test_a_constructor_error_is_reported_with_its_line(self, tmp_path: Path) -> None:
        bodies = (
            ("\n        raise RuntimeError('no luck')", 5, r"Bad\(\) raises RuntimeError: no luck"),
            ("\n        raise SystemExit", 5, r"Bad\(\) raises SystemExit$"),
            ("\n        import json\n        json.loads('{')", 6, "JSONDecodeError"),
            (" pass", 4, r"Bad\(\) raises TypeError: .*__init__"),
        )
        for n, (body, line, message) in enumerate(bodies):
            more = ", need" if body == " pass" else ""
            text = f"from hubbub import Agent\n\nclass Bad(Agent):\n    def __init__(self{more}):"
            path = write(tmp_path, f"bad{n}.py", text + body + "\n")
            with pytest.raises(ConfigError, match=message) as caught:
                construct(self.load(tmp_path, f"{path.name}:Bad"))
            assert (caught.value.path, caught.value.line) == (path, line), body

    def test_a_constructor_error_without_python_code_is_reported_with_its_file(
        self, tmp_path: Path
    ) -> None:
        path = write(tmp_path, "needy.py", "class Base(int):\n    __init__ = dict.update\n")
        base = load_attribute("needy.py:Base", tmp_path)
        assert isinstance(base, type)
        with pytest.raises(ConfigError) as caught:
            construct(base)
        assert (caught.value.path, caught.value.line) == (path, None)
