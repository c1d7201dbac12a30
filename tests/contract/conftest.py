"""Rewrites the assertions of the shipped contract suites, as in tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "hubbub.testing.store_contract",
    "hubbub.testing.store_contract_control",
    "hubbub.testing.store_contract_log",
    "hubbub.testing.store_contract_mods",
)
