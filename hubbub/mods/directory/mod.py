"""The mod `directory`: finds agents by their capabilities.

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

__all__ = ["DirectoryMod", "WordMatch", "card_of", "keywords", "merge_changes", "queries", "rank"]

Changes = Mapping[str, JsonValue]
"""Fields of a card that its participant changed, by name."""

MAX_CHARACTERS = 2_000
"""Maximum number of characters per field. Cards of joining participants can hold anything."""
MAX_SKILLS = 50
_FIELDS = ("description", "skills", "inputs", "cost", "availability")


def merge_changes(before: Changes, update: UpdateCard) -> Changes:
    """The changes after an update. An empty field is reset."""
    given = update.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in {**before, **given}.items() if value}


def card_of(participant: Participant, changes: Changes) -> AgentCard:
    card: dict[str, Any] = {**participant.card.model_dump(mode="json"), **changes}
    # Any: JSON with fields of the participant's choice.
    skills = card.get("skills") or ()
    return AgentCard(
        id=participant.id,
        kind=participant.kind,
        present=participant.present,
        description=_text(card.get("description")),
        skills=tuple(_text(skill) for skill in skills[:MAX_SKILLS]),
        inputs=_text(card.get("inputs")),
        cost=_text(card.get("cost")),
        availability=_text(card.get("availability")),
        more={name: value for name, value in card.items() if name not in _FIELDS},
    )


def _text(value: JsonValue) -> str:
    """The text of a field that can hold any JSON."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(map(str, value))
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[
        :MAX_CHARACTERS
    ]


def searchable_text(card: AgentCard) -> tuple[str, str, str]:
    """The searchable text of a card: its name, its skills, the rest."""
    more = json.dumps(card.more, ensure_ascii=False)[:MAX_CHARACTERS] if card.more else ""
    about = "\n".join((card.description, card.inputs, card.availability, more))
    return card.id, indexable("\n".join(card.skills)), indexable(about)


def digest_of(text: tuple[str, str, str]) -> str:
    return hashlib.sha256("\0".join(text).encode()).hexdigest()[:32]


COMMON = frozenset(
    tokens(
        "a an and any anybody anyone are as at be by can could do does for from get give have help "
        "i in into is it me my need of on or our please should somebody someone something that the "
        "this to us use want we what who whose will with would you your"
    )
)
"""Stop words."""
STRONG = 2.0
"""Weight of a word that occurs among the skills or as the name."""


class WordMatch(NamedTuple):
    """A word of the need that occurs in a card."""

    word: int
    participant: str
    strong: bool
    """Whether it occurs among the skills or as the name."""


class RankedAgent(NamedTuple):
    participant: str
    score: float
    why: tuple[str, ...]
    """The words that occur in its card, in the order of the need."""


def keywords(need: str) -> Sequence[str]:
    """The words of a need without stop words, or all words if nothing else remains."""
    all_words = list(dict.fromkeys(map(folded, tokens(need))))
    return ([word for word in all_words if word not in COMMON] or all_words)[:MOST_WORDS]


def queries(words: Sequence[str]) -> Sequence[str]:
    """Arguments of MATCH: each word anywhere, then each among the skills or as the name."""
    quoted = [f'"{indexable(word).strip()}"' for word in words]
    return [*quoted, *(f"{{name skills}} : {word}" for word in quoted)]


def rank(words: Sequence[str], matches: Iterable[WordMatch], cards: int) -> Sequence[RankedAgent]:
    """All matching agents, best first. `cards` is the number of cards searched."""
    weights: dict[int, dict[str, float]] = defaultdict(dict)
    for match in matches:
        by_participant = weights[match.word]
        weight = STRONG if match.strong else 1.0
        previous = by_participant.get(match.participant, 0.0)
        by_participant[match.participant] = max(weight, previous)
    scores: dict[str, float] = defaultdict(float)
    why: dict[str, list[str]] = defaultdict(list)
    for word in sorted(weights):
        rarity = 1.0 + math.log(max(cards, 1) / len(weights[word]))
        for participant, weight in weights[word].items():
            scores[participant] += weight * max(rarity, 1.0)
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
BATCH = 200
"""Cards indexed per transaction."""
MAX_RANKED = 200
"""Maximum number of matches that are compared by workload."""


class DirectoryMod(Mod):
    """Cards of agents and people (skills, required input, cost, availability), and a search for
    those that match a need.

    A card comes from the YAML or from the agent when it joins (`card`), with the changes that its
    participant made by `update_card`. Absent participants are still listed, and marked as absent.
    """

    name = "directory"
    migrations = "tables"

    def __init__(self, config: ModConfig):
        super().__init__(config)
        self._changes: dict[str, Changes] = {}
        self._indexed: dict[str, str] = {}
        """Digests of the indexed cards, by participant."""

    async def start(self) -> None:
        own = await self.host.rows("SELECT participant, changes FROM directory_own")
        self._changes = {participant: json.loads(changes) for participant, changes in own}
        indexed = await self.host.rows("SELECT participant, known FROM directory_entry")
        self._indexed = dict(map(tuple, indexed))

    def _card(self, participant: Participant) -> AgentCard:
        return card_of(participant, self._changes.get(participant.id, {}))

    def _with_workload(self, card: AgentCard) -> AgentCard:
        """The card with the workload of its participant."""
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
        """Find agents (or people) for a piece of work: those whose cards match the need, best match
        first, with their cost, presence and workload."""
        cards = self._cards(args)
        await self._index(cards.values())
        cards.pop(call.participant, None)
        need = keywords(args.need)
        matches = await self._matches(need)
        ranked = rank(need, (match for match in matches if match.participant in cards), len(cards))
        best = sorted(
            (self._found(cards[each.participant], each) for each in ranked[:MAX_RANKED]),
            key=lambda each: (-each[0], not each[1].present, each[1].open, each[1].id),
        )
        agents = tuple(card for _, card in best[: args.limit])
        advice = "" if agents else "no card matches; list_agents shows all agents"
        return FoundAgents(agents=agents, more=len(best) > args.limit, advice=advice)

    def _found(self, card: AgentCard, ranked: RankedAgent) -> tuple[float, FoundAgent]:
        fields = self._with_workload(card).model_dump()
        return ranked.score, FoundAgent(**fields, why=ranked.why)

    async def _matches(self, need: Sequence[str]) -> Sequence[WordMatch]:
        rows = await self.host.rows(_MATCHES, json.dumps(queries(need)))
        return [WordMatch(key % len(need), who, key >= len(need)) for key, who in rows]

    @operation()
    def list_agents(self, call: Calling, args: ListAgents) -> Agents:
        """List the agents of the network, including absent ones, with their cards, sorted by id."""
        cards = self._cards(args)
        names = sorted(id for id in cards if args.after is None or id > args.after)
        page, more = page_of(names, args.limit)
        return Agents(agents=tuple(self._with_workload(cards[name]) for name in page), more=more)

    @operation()
    def read_card(self, call: Calling, args: ReadCard) -> AgentCard:
        """Read the card of a participant: its skills, the input it needs, its cost and its
        availability."""
        participant = self.host.participant(args.participant)
        if participant is None:
            raise OperationError(
                ErrorCode.UNKNOWN_PARTICIPANT,
                f"there is no participant {args.participant[:64]!r}; see list_agents",
            )
        return self._with_workload(self._card(participant))

    # Changing -----------------------------------------------------------------------------

    @operation(permission="write", output=AgentCard, idempotent=True)
    def update_card(self, call: Calling, args: UpdateCard) -> Commit:
        """Change your own card, by which others find you. Changes persist when you reconnect."""
        me = self.host.participant(call.participant)
        if me is None:
            raise forbidden("you are not a participant and have no card")
        changes = merge_changes(self._changes.get(me.id, {}), args)
        text, at = json.dumps(changes), self.host.now()
        statement = put("directory_own", "participant", participant=me.id, changes=text, at=at)
        apply = partial(self._changes.__setitem__, me.id, changes)
        return Commit([statement], self._with_workload(card_of(me, changes)), applied=apply)

    # The index ----------------------------------------------------------------------------

    async def _index(self, cards: Iterable[AgentCard]) -> None:
        """Index the cards that changed. This happens on a search, so joining costs nothing."""
        texts = ((card.id, searchable_text(card)) for card in cards)
        entries = [(name, text, digest_of(text)) for name, text in texts]
        changed = [each for each in entries if self._indexed.get(each[0]) != each[2]]
        for start in range(0, len(changed), BATCH):
            statements: list[Statement] = []
            for name, text, digest in changed[start : start + BATCH]:
                statements.append(
                    put("directory_entry", "participant", participant=name, known=digest)
                )
                statements.append(Statement(_TEXT, (*text, name)))
            await self.host.write(statements)
            batch = changed[start : start + BATCH]
            self._indexed.update((name, digest) for name, _, digest in batch)
