"""Finding and installing the browser, on machines made of a folder with a few commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.support.chromium import MISSING

ROOT = Path(__file__).parents[2]
BROWSER = "#!/bin/sh\nexit 0\n"


def command(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)


def install(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As `make test` does it, where only the commands in `folder` exist."""
    return subprocess.run(
        [sys.executable, "-m", "tests.browser.support.chromium"],
        cwd=ROOT, env={"PATH": str(folder), "HOME": str(folder), **environment},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_that_is_there_is_left_alone(tmp_path: Path, name: str) -> None:
    command(tmp_path, name, BROWSER)
    command(tmp_path, "apt-get", f"#!/bin/sh\necho called > {tmp_path}/called\n")
    assert install(tmp_path).stderr == ""
    assert not (tmp_path / "called").exists()


def test_where_nothing_can_be_installed_one_line_says_how(tmp_path: Path) -> None:
    assert install(tmp_path).stderr == f"{MISSING}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_root_on_debian_gets_the_package(tmp_path: Path) -> None:
    called, there = tmp_path / "called", tmp_path / "chromium"
    put = f"case $* in *install*) : > {there}; /bin/chmod +x {there};; esac"
    command(tmp_path, "apt-get", f'#!/bin/sh\necho "$*" >> {called}\n{put}\n')
    assert MISSING not in install(tmp_path).stderr
    update, packages = called.read_text().splitlines()
    assert update.endswith("update")
    assert "install -y --no-install-recommends chromium" in packages


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_a_failed_installation_is_told_and_fails_nothing(tmp_path: Path) -> None:
    command(tmp_path, "apt-get", "#!/bin/sh\necho no network >&2\nexit 100\n")
    told = install(tmp_path).stderr.splitlines()
    assert "apt-get install failed: no network" in told
    assert told[-1] == MISSING


def test_a_named_browser_is_taken_and_nothing_else(tmp_path: Path) -> None:
    command(tmp_path, "mine", BROWSER)
    command(tmp_path, "apt-get", f"#!/bin/sh\necho called > {tmp_path}/called\n")
    assert install(tmp_path, CHROMIUM=str(tmp_path / "mine")).stderr == ""
    assert install(tmp_path, CHROMIUM=str(tmp_path / "other")).stderr == f"{MISSING}\n"
    assert not (tmp_path / "called").exists()
