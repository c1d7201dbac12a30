"""Folders of Markdown that agents search: `KnowledgeBase`, and its tool `SearchKnowledge`.

base   notices changes, and answers queries; the tool that a model calls
index  files as passages, and finds them
"""

from __future__ import annotations

from hubbub.agents.knowledge.base import (
    SEARCH_KNOWLEDGE,
    Hit,
    KnowledgeBase,
    SearchKnowledge,
    SearchResult,
)

__all__ = ["SEARCH_KNOWLEDGE", "Hit", "KnowledgeBase", "SearchKnowledge", "SearchResult"]
