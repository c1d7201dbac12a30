"""The shop: tools for tests of plans and helpers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from hubbub import tool
from hubbub.agents.tools.base import ToolFailed
from hubbub.loading import load_module

__all__ = ["FILE", "TOOLS", "Shop", "fresh_shop", "price_of", "shop", "total_of"]

FILE = Path(__file__)
TOOLS = ("trade.py:price_of", "trade.py:total_of")


@dataclass
class Shop:
    """The state of the tools; each test gets a fresh one."""

    prices: dict[str, float] = field(default_factory=lambda: {"lamp": 24.5, "clock": 40.0})
    asked: list[str] = field(default_factory=list)
    together: asyncio.Barrier | None = None
    """Lookups wait until this many run at once."""
    closed: int = 0
    """The number of lookups that fail next."""


shop = Shop()


def fresh_shop() -> Shop:
    """A fresh shop, set in the module that agents load by its path."""
    fresh = Shop()
    vars(load_module(FILE))["shop"] = fresh
    return fresh


@tool(idempotent=False)
async def price_of(article: str) -> float:
    """Look up a price, in euros."""
    shop.asked.append(article)
    if shop.together is not None:
        await shop.together.wait()
    if shop.closed:
        shop.closed -= 1
        raise ToolFailed("the shop is closed just now", error="closed")
    if article not in shop.prices:
        raise ToolFailed(f"there is no {article}", error="unknown_article")
    return shop.prices[article]


@tool(idempotent=True)
def total_of(prices: list[float], note: str = "") -> str:
    """Add prices up."""
    return f"{sum(prices):g} euros{note}"
