"""`make` and scripts/install.sh on machines without Python, venv or uv."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "install.sh"
TOOLS = ("sh", "rm", "mkdir", "cat", "chmod", "touch", "env")

Program = Callable[[str, str], None]


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    """A PATH with the few tools that the script needs, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        path = shutil.which(tool, path=f"{os.environ['PATH']}:/bin:/usr/bin")
        assert path is not None, tool
        (folder / tool).symlink_to(path)
    return folder


@pytest.fixture
def program(bin_: Path) -> Program:
    """Puts a program on that PATH, as a shell script."""

    def program(name: str, body: str) -> None:
        path = bin_ / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    return program


def install(bin_: Path, *, python: str | None = None) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": str(bin_), **({"PYTHON": python} if python else {})}
    return subprocess.run(
        ["sh", str(SCRIPT), ".venv", "."],
        cwd=bin_.parent,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


GOOD_PYTHON = """
case "$1 $2" in
"-c "*) exit 0 ;;
"-m venv") mkdir -p "$3/bin"; cat "$0" > "$3/bin/python"; chmod +x "$3/bin/python" ;;
"-m pip") echo "pip $* constraint=${PIP_CONSTRAINT:-}" >> calls.txt ;;
esac
"""
"""A recent Python whose pip records its arguments."""


def calls(bin_: Path) -> list[str]:
    return (bin_.parent / "calls.txt").read_text().splitlines()


def test_install_uses_a_recent_python_from_the_path_or_from_the_variable(
    bin_: Path, program: Program
) -> None:
    message = "needs Python 3.11 or newer, and none is on the PATH"
    ran = install(bin_)
    assert (ran.returncode, message in ran.stderr, "PYTHON=" in ran.stderr) == (2, True, True)
    for name in ("python3", "python3.11"):
        program(name, "exit 1")  # too old
    ran = install(bin_)
    assert (ran.returncode, message in ran.stderr) == (2, True)
    program("my-python", GOOD_PYTHON)
    assert install(bin_).returncode == 2
    assert install(bin_, python="my-python").returncode == 0
    shutil.rmtree(bin_.parent / ".venv")
    program("python3.12", GOOD_PYTHON)
    assert install(bin_).returncode == 0
    assert calls(bin_)[-1] == "pip -m pip install --quiet -e . constraint=constraints.txt"


def test_a_python_without_venv_is_reported_with_the_package_to_install(
    bin_: Path, program: Program
) -> None:
    program("python3", 'case "$1 $2" in "-m venv") exit 1 ;; esac')
    ran = install(bin_)
    assert (ran.returncode, "python3-venv" in ran.stderr) == (2, True)
    assert not (bin_.parent / ".venv").exists()


def test_install_prefers_uv_and_falls_back_to_pip(bin_: Path, program: Program) -> None:
    program("python3", GOOD_PYTHON)
    program("uv", 'echo "uv $*" >> calls.txt\ncase "$1" in venv) mkdir -p .venv/bin ;; esac')
    assert install(bin_).returncode == 0
    created, installed = calls(bin_)
    assert created.startswith("uv venv --quiet --python ")
    assert installed == "uv pip install --quiet --python .venv/bin/python -c constraints.txt -e ."
    program("uv", "exit 1")
    ran = install(bin_)
    assert ran.returncode == 0, ran.stderr
    assert "uv did not manage; trying pip" in ran.stderr
    assert calls(bin_)[-1].startswith("pip -m pip install")


def test_a_venv_whose_python_is_gone_is_rebuilt(bin_: Path, program: Program) -> None:
    stale = bin_.parent / ".venv" / "bin"
    stale.mkdir(parents=True)
    (stale / "python").write_text("#!/bin/sh\nexit 127\n")
    (stale / "python").chmod(0o755)
    (stale / "leftover").touch()
    program("python3", GOOD_PYTHON)
    assert install(bin_).returncode == 0
    assert not (stale / "leftover").exists()


def test_plain_make_lists_all_targets_and_ci_runs_check_and_test() -> None:
    outer = ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")  # of the `make test` that runs this
    environ = {name: value for name, value in os.environ.items() if name not in outer}
    ran = subprocess.run(
        ["make"], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    (phony,) = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = [line.split()[:2] for line in ran.stdout.splitlines()]
    assert targets == [["make", target] for target in phony.split()]
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.index("set -euo pipefail") < text.index("make check") < text.index("make test")


def test_a_failing_part_ends_the_test_run_with_its_exit_code(tmp_path: Path) -> None:
    """Three parts, with a Python that records its arguments and fails in the second."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$HYPOTHESIS_PROFILE $*" >> {tmp_path}/calls\n'
        'case "$*" in *"(slow or"*) exit 3 ;; esac\n'
    )
    python.chmod(0o755)
    environ = {k: v for k, v in os.environ.items() if k != "HYPOTHESIS_PROFILE"}
    command = ["sh", str(ROOT / "scripts" / "test.sh"), str(python), "2"]
    ran = subprocess.run(
        [*command, "fast", "slow", "page"], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 3
    lines = [line.partition(":")[0] for line in ran.stdout.splitlines() if line]
    failed = "Part 2 of 3 failed; the parts after it did not run."
    assert lines == ["Part 1 of 3, fast", "Part 2 of 3, slow", failed]
    calls = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert (calls[0], calls[-1]) == ("fast", "full"), "the profiles of hypothesis"
    assert set(calls[1:-1]) == {"-m"}, "the second part prepares the programs it needs"
    ran = subprocess.run([*command, "page"], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1].startswith("All passed, in ")
    unknown = subprocess.run([*command, "everything"], capture_output=True, text=True, check=False)
    assert (unknown.returncode, "all, fast, slow, page, npm" in unknown.stderr) == (2, True)


def test_constraints_pin_every_dependency_and_name_no_host() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    parts = ["dev", *re.findall(r"\w+", extras["dev"][0])[1:]]
    wanted = [*project["dependencies"], *(each for part in parts for each in extras[part])]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    names = {re.split(r"[<>=!~;\[ ]", each)[0].lower().replace("_", "-") for each in wanted}
    assert names - pinned == {"hubbub"}
    assert not any("/" in line.partition("#")[0] for line in lines)
