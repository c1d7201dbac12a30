"""Tests with a real model, which only `make test-model` collects."""

from __future__ import annotations

import os

if "HUBBUB_TEST_MODEL" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
