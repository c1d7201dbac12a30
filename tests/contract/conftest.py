"""Assertions of the shipped contract suites are explained like those of tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "hubbub.testing.store_contract",
    "hubbub.testing.store_contract_log",
    "hubbub.testing.store_contract_mods",
    "hubbub.testing.store_contract_log",
)
