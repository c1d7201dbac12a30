"""Tools for planning a trip: prices of trains and rooms, the weather, sums.

The numbers are fictional. The first call of `room_price` for a city fails, as real services
sometimes do, to demonstrate retries.
"""

from __future__ import annotations

from typing import Annotated

from hubbub import tool
from hubbub.agents.tools.base import ToolFailed

__all__ = ["CITIES", "Offers", "room_price", "sum_up", "train_price", "weather"]

CITIES = ("Lisbon", "Paris", "Rome", "Vienna")
_TRAINS = {"Lisbon": 189.0, "Paris": 79.5, "Rome": 129.0, "Vienna": 99.0}
_ROOMS = {"Lisbon": 74.0, "Paris": 145.0, "Rome": 98.0, "Vienna": 110.0}
_DEGREES = {"Lisbon": (11, 24), "Paris": (4, 20), "Rome": (8, 26), "Vienna": (0, 21)}
_COLDEST = 1
"""January."""

City = Annotated[str, f"One of {', '.join(CITIES)}"]


class Offers:
    """Room prices. The offers of a city are loaded by the first request for them."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()

    def price(self, city: str) -> float:
        """The price per night, in euros. Raises `ToolFailed`."""
        name = _known(city)
        if name not in self._loaded:
            self._loaded.add(name)
            raise ToolFailed(
                f"the offers for {name} are loading; try again", error="busy", retry=True
            )
        return _ROOMS[name]


_offers = Offers()


@tool
def train_price(city: City) -> float:
    """Look up the price of a return train ticket to a city for one person, in euros."""
    return _TRAINS[_known(city)]


@tool
def room_price(city: City, nights: Annotated[int, "How many nights, at least 1"]) -> float:
    """Look up the total price of a double room in a city for all nights, in euros."""
    if nights < 1:
        raise ToolFailed("a stay has at least one night", error="wrong_nights", retry=True)
    return _offers.price(city) * nights


@tool(idempotent=True)
def weather(city: City, month: Annotated[int, "From 1 to 12"]) -> str:
    """Look up the usual temperature in a city in a month."""
    coldest, warmest = _DEGREES[_known(city)]
    away = min((month - _COLDEST) % 12, (_COLDEST - month) % 12)
    return f"{round(coldest + (warmest - coldest) * away / 6)} degrees"


@tool(idempotent=True)
def sum_up(amounts: list[float]) -> float:
    """Add amounts up."""
    return round(sum(amounts), 2)


def _known(city: str) -> str:
    names = {name.casefold(): name for name in CITIES}
    if city.strip().casefold() not in names:
        raise ToolFailed(f"nothing is known about {city!r}", error="unknown_city", near=CITIES)
    return names[city.strip().casefold()]
