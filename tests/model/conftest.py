"""These tests ask a real model. They are collected by `make test-model` alone."""

from __future__ import annotations

import os

if "HUBBUB_TEST_MODEL" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
