"""Folders of Markdown that agents search: `KnowledgeBase`, and its tool `SearchKnowledge`.

base      notices changes, and answers queries
markdown  files as passages; `index` finds them
tool      what a model calls
"""

from __future__ import annotations

from hubbub.agents.knowledge.base import Hit, KnowledgeBase, KnowledgeLimits, SearchResult
from hubbub.agents.knowledge.tool import SEARCH_KNOWLEDGE, SearchKnowledge

__all__ = [
    "SEARCH_KNOWLEDGE",
    "Hit",
    "KnowledgeBase",
    "KnowledgeLimits",
    "SearchKnowledge",
    "SearchResult",
]
