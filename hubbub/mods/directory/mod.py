"""The mod `directory`: agents by what they can do.

mods:
  - directory
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pydantic import JsonValue

from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.directory.schemas import (
    AgentCard,
    Agents,
    FindAgent,
    FoundAgent,
    FoundAgents,
    ListAgents,
    ReadCard,
    UpdateCard,
)
from hubbub.mods.operation import Calling, Commit, Statement, forbidden, operation
from hubbub.mods.repository import page_of, put
from hubbub.mods.text_search import MOST_WORDS, folded, indexable, tokens
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Participant

__all__ = ["DirectoryMod", "WordMatch", "card_of", "changed", "fits", "keywords", "queries"]

Changes = Mapping[str, JsonValue]
"""Fields of a card that its participant has changed, by name."""

LONGEST = 2_000
"""Characters of one field: cards that participants come with may hold anything."""
MOST_SKILLS = 50
_FIELDS = ("description", "skills", "inputs", "cost", "availability")


def changed(before: Changes, update: UpdateCard) -> Changes:
    """What is changed afterwards. An empty field is taken back."""
    given = update.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in {**before, **given}.items() if value}


def card_of(participant: Participant, changes: Changes) -> AgentCard:
    card: dict[str, Any] = {**participant.card.model_dump(mode="json"), **changes}
    # Any: JSON, whose fields the participant names.
    skills = card.get("skills") or ()
    return AgentCard(
        id=participant.id,
        kind=participant.kind,
        present=participant.present,
        description=_text(card.get("description")),
        skills=tuple(_text(skill) for skill in skills[:MOST_SKILLS]),
        inputs=_text(card.get("inputs")),
        cost=_text(card.get("cost")),
        availability=_text(card.get("availability")),
        more={name: value for name, value in card.items() if name not in _FIELDS},
    )


def _text(value: JsonValue) -> str:
    """A field that may be anything, as text."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(map(str, value))
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:LONGEST]


def words(card: AgentCard) -> tuple[str, str, str]:
    """What is searched of a card: its name, its skills, the rest."""
    more = json.dumps(card.more, ensure_ascii=False)[:LONGEST] if card.more else ""
    about = "\n".join((card.description, card.inputs, card.availability, more))
    return card.id, indexable("\n".join(card.skills)), indexable(about)


def digest_of(searched: tuple[str, str, str]) -> str:
    return hashlib.sha256("\0".join(searched).encode()).hexdigest()[:32]


COMMON = frozenset(
    tokens(
        "a an and any anybody anyone are as at be by can could do does for from get give have help "
        "i in into is it me my need of on or our please should somebody someone something that the "
        "this to us use want we what who whose will with would you your"
    )
)
"""Words that say nothing about a need."""
STRONG = 2.0
"""What a word counts among skills, or as a name."""


class WordMatch(NamedTuple):
    """A word stands in a card."""

    word: int
    participant: str
    strong: bool
    """Whether among its skills, or as its name."""


class RankedAgent(NamedTuple):
    participant: str
    score: float
    why: tuple[str, ...]
    """The words that stand in its card, in the order of the need."""


def keywords(need: str) -> Sequence[str]:
    """The words of a need that say what it is; all words, if none does."""
    all_words = list(dict.fromkeys(map(folded, tokens(need))))
    return ([word for word in all_words if word not in COMMON] or all_words)[:MOST_WORDS]


def queries(words: Sequence[str]) -> Sequence[str]:
    """For MATCH: each word anywhere, then each among skills or as a name."""
    quoted = [f'"{indexable(word).strip()}"' for word in words]
    return [*quoted, *(f"{{name skills}} : {word}" for word in quoted)]


def fits(words: Sequence[str], matches: Iterable[WordMatch], cards: int) -> Sequence[RankedAgent]:
    """All who fit, best first; `cards` is how many there are."""
    weights: dict[int, dict[str, float]] = defaultdict(dict)
    for match in matches:
        found = weights[match.word]
        weight = STRONG if match.strong else 1.0
        found[match.participant] = max(weight, found.get(match.participant, 0.0))
    scores: dict[str, float] = defaultdict(float)
    why: dict[str, list[str]] = defaultdict(list)
    for word in sorted(weights):
        rare = 1.0 + math.log(max(cards, 1) / len(weights[word]))
        for participant, weight in weights[word].items():
            scores[participant] += weight * max(rare, 1.0)
            why[participant].append(words[word])
    best = sorted(scores, key=lambda participant: (-scores[participant], participant))
    return [RankedAgent(each, scores[each], tuple(why[each])) for each in best]


_MATCHES = """
SELECT w.key, e.participant
FROM json_each(?) AS w CROSS JOIN directory_text
JOIN directory_entry AS e ON e.id = directory_text.rowid
WHERE directory_text MATCH w.value
"""
_TEXT = """
INSERT OR REPLACE INTO directory_text (rowid, name, skills, about)
SELECT id, ?, ?, ? FROM directory_entry WHERE participant = ?
"""
PIECE = 200
"""Cards that are indexed in one transaction."""


class DirectoryMod(Mod):
    """The cards of agents and people: what they can do, what they need to be given, what they cost
    and when they are there; and who fits a need.

    A card is what the YAML says or an agent tells when it joins (`card`), with what its
    participant has changed since by `update_card`. Who is absent stays findable, and is marked.
    """

    name = "directory"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._changes: dict[str, Changes] = {}
        self._known: dict[str, str] = {}
        """Digests of the cards that are indexed."""

    async def start(self) -> None:
        own = await self.host.rows("SELECT participant, changes FROM directory_own")
        self._changes = {participant: json.loads(changes) for participant, changes in own}
        known = await self.host.rows("SELECT participant, known FROM directory_entry")
        self._known = dict(map(tuple, known))

    def _card(self, participant: Participant) -> AgentCard:
        return card_of(participant, self._changes.get(participant.id, {}))

    def _standing(self, card: AgentCard) -> AgentCard:
        """The card with how much its participant has to do."""
        busy = self.host.busy(card.id)
        return card.model_copy(update={"running": busy.running, "open": busy.open})

    def _cards(self, args: FindAgent | ListAgents) -> dict[str, AgentCard]:
        return {
            each.id: self._card(each)
            for each in self.host.participants()
            if (args.people or each.kind != "human") and (each.present or not args.present)
        }

    # Reading ------------------------------------------------------------------------------

    @operation(cost=2.0)
    async def find_agent(self, call: Calling, args: FindAgent) -> FoundAgents:
        """Find who can do something: agents (or people) whose cards fit a need, the best first,
        with what they cost, whether they are there, and how much they have to do."""
        cards = self._cards(args)
        await self._index(cards.values())
        cards.pop(call.participant, None)
        need = keywords(args.need)
        matches = await self._matches(need)
        found = fits(need, (match for match in matches if match.participant in cards), len(cards))
        best = sorted(
            (self._found(cards[fit.participant], fit) for fit in found[:PIECE]),
            key=lambda each: (-each[0], not each[1].present, each[1].open, each[1].id),
        )
        told = tuple(card for _, card in best[: args.limit])
        advice = "" if told else "no card says anything of the kind; list_agents shows them all"
        return FoundAgents(agents=told, more=len(best) > args.limit, advice=advice)

    def _found(self, card: AgentCard, fit: RankedAgent) -> tuple[float, FoundAgent]:
        fields = self._standing(card).model_dump()
        return fit.score, FoundAgent(**fields, why=fit.why)

    async def _matches(self, need: Sequence[str]) -> Sequence[WordMatch]:
        rows = await self.host.rows(_MATCHES, json.dumps(queries(need)))
        return [WordMatch(key % len(need), who, key >= len(need)) for key, who in rows]

    @operation()
    def list_agents(self, call: Calling, args: ListAgents) -> Agents:
        """List the agents of the network with their cards, by name; the absent ones, too."""
        cards = self._cards(args)
        names = sorted(id for id in cards if args.after is None or id > args.after)
        page, more = page_of(names, args.limit)
        return Agents(agents=tuple(self._standing(cards[name]) for name in page), more=more)

    @operation()
    def read_card(self, call: Calling, args: ReadCard) -> AgentCard:
        """Read the card of a participant: what it can do, what it needs to be given, what it costs,
        and when it is there."""
        found = self.host.participant(args.participant)
        if found is None:
            raise OperationError(
                ErrorCode.UNKNOWN_PARTICIPANT,
                f"there is no participant {args.participant[:64]!r}; see list_agents",
            )
        return self._standing(self._card(found))

    # Changing -----------------------------------------------------------------------------

    @operation(permission="write", output=AgentCard, idempotent=True)
    def update_card(self, call: Calling, args: UpdateCard) -> Commit:
        """Change your own card, by which others find you. It stays changed when you come back."""
        me = self.host.participant(call.participant)
        if me is None:
            raise forbidden("you are no participant, and have no card")
        changes = changed(self._changes.get(me.id, {}), args)
        text, at = json.dumps(changes), self.host.now()
        statement = put("directory_own", "participant", participant=me.id, changes=text, at=at)
        keep = partial(self._changes.__setitem__, me.id, changes)
        return Commit([statement], self._standing(card_of(me, changes)), applied=keep)

    # The index ----------------------------------------------------------------------------

    async def _index(self, cards: Iterable[AgentCard]) -> None:
        """Bring up what is searched of the cards that are not as they were. Nobody looks for a
        card before somebody asks, so joining costs nothing."""
        news = [(card.id, searched, digest_of(searched)) for card, searched in _searched(cards)]
        news = [each for each in news if self._known.get(each[0]) != each[2]]
        for start in range(0, len(news), PIECE):
            statements: list[Statement] = []
            for name, searched, digest in news[start : start + PIECE]:
                statements.append(
                    put("directory_entry", "participant", participant=name, known=digest)
                )
                statements.append(Statement(_TEXT, (*searched, name)))
            await self.host.keep(statements)
            self._known.update((name, digest) for name, _, digest in news[start : start + PIECE])


def _searched(cards: Iterable[AgentCard]) -> Iterable[tuple[AgentCard, tuple[str, str, str]]]:
    return ((card, words(card)) for card in cards)
