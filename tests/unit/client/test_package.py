"""The package as its users meet it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hubbub.client


def test_every_public_name_is_there_once() -> None:
    names = hubbub.client.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(hubbub.client, name) for name in names)


@pytest.mark.slow
def test_importing_the_package_imports_no_websocket_library() -> None:
    code = "import sys, hubbub.client; print('websockets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
