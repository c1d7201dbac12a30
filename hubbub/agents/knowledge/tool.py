"""`search_knowledge`: searches the operator's documents for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from pydantic import JsonValue

from hubbub.agents.knowledge.base import MOST_HITS, Hit, KnowledgeBase, SearchResult
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, ReadingTool
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.worker_thread import run_in_thread

__all__ = ["SEARCH_KNOWLEDGE", "SearchKnowledge"]

SEARCH_KNOWLEDGE = "search_knowledge"
USUAL_HITS = 5
_MOST_PROBLEMS = 5
_MOST_TITLES = 30


class SearchKnowledge(ReadingTool):
    """The tool. Its result is JSON, so that a result that is too long is cut hit by hit."""

    name = SEARCH_KNOWLEDGE
    overrides = ToolOverrides(outside=True)

    def __init__(self, base: KnowledgeBase):
        self._base = base
        limit: JsonValue = {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_HITS,
            "default": USUAL_HITS,
            "description": "Passages at most.",
        }
        query: JsonValue = {
            "type": "string",
            "description": 'Words that the answer should have. "Words in quotes" must occur as '
            "they stand; refund* finds all words that begin so.",
        }
        self.spec = ToolSpec(
            SEARCH_KNOWLEDGE,
            f"Search your operator's documents ({_named(base)}). Gives the passages that match "
            "best, with file and heading: name them as your source. If they do not answer the "
            "question, search again in other words.",
            {
                "type": "object",
                "properties": {"query": query, "limit": limit},
                "required": ["query"],
                "additionalProperties": False,
            },
        )

    async def best(self, text: str, most: int) -> Sequence[Hit]:
        """The passages that match a text best, at most `most`."""
        return (await run_in_thread(partial(self._base.search, text, most))).hits

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Search, in a thread. Any query is valid."""
        query, limit = str(arguments["query"]), arguments.get("limit", USUAL_HITS)
        assert isinstance(limit, int | float), "arguments are checked by the schema"
        found = await run_in_thread(partial(self._base.search, query, int(limit)))
        return json.dumps(_shown(found), ensure_ascii=False)


def _named(base: KnowledgeBase) -> str:
    return ", ".join(label or folder.name for label, folder in base.folders.items())


def _shown(found: SearchResult) -> dict[str, JsonValue]:
    hits: list[JsonValue] = [dict(hit._asdict()) for hit in found.hits]
    shown: dict[str, JsonValue] = {"hits": hits}
    if found.matches > len(hits):
        shown["matches"] = found.matches
    if not hits:
        shown["hint"] = "nothing was found: try other words, or fewer"
        shown["documents"] = _some(found.titles, _MOST_TITLES)
    if found.problems:
        shown["not_searched"] = _some(found.problems, _MOST_PROBLEMS)
    return shown


def _some(texts: tuple[str, ...], most: int) -> list[JsonValue]:
    more = [f"… and {len(texts) - most} more"] if len(texts) > most else []
    return [*texts[:most], *more]
