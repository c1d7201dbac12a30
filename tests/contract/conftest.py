"""Assertions of the shipped contract suites are explained like those of tests."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

pytest.register_assert_rewrite(
    "hubbub.testing.store_contract",
    "hubbub.testing.store_contract_log",
    "hubbub.testing.store_contract_mods",
    "hubbub.testing.store_contract_searches",
)

# An environment that was made before psycopg belonged to it runs all other tests.
collect_ignore_glob = [] if find_spec("psycopg") else ["*postgres*"]
