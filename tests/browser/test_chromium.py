"""Finding and installing the browser; a folder with a few commands stands for a machine."""

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


def install(folder: Path, **environment: str) -> list[str]:
    """The output of the installation, with only the commands in `folder` on the path."""
    return subprocess.run(
        [sys.executable, "-m", "tests.browser.support.chromium"],
        cwd=ROOT, env={"PATH": str(folder), "HOME": str(folder), **environment},
        capture_output=True, text=True, timeout=60, check=True,
    ).stderr.splitlines()  # fmt: skip


def test_an_existing_or_configured_browser_is_used_and_nothing_is_installed(tmp_path: Path) -> None:
    command(tmp_path, "google-chrome", BROWSER)
    command(tmp_path, "apt-get", f"#!/bin/sh\necho called > {tmp_path}/called\n")
    assert install(tmp_path) == []
    assert install(tmp_path, CHROMIUM=str(tmp_path / "other")) == [MISSING]
    assert not (tmp_path / "called").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_root_on_debian_installs_the_package_and_reports_a_failure(
    tmp_path: Path,
) -> None:
    command(tmp_path, "apt-get", "#!/bin/sh\necho no network >&2\nexit 100\n")
    lines = install(tmp_path)
    assert "apt-get install failed: no network" in lines
    assert lines[-1] == MISSING
    called, there = tmp_path / "called", tmp_path / "chromium"
    put = f"case $* in *install*) : > {there}; /bin/chmod +x {there};; esac"
    command(tmp_path, "apt-get", f'#!/bin/sh\necho "$*" >> {called}\n{put}\n')
    assert MISSING not in install(tmp_path)
    update, packages = called.read_text().splitlines()
    assert update.endswith("update")
    assert "install -y --no-install-recommends chromium" in packages
