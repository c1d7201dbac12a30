"""Folders of Markdown that agents search: `KnowledgeBase`, and its tool `SearchKnowledge`.

base   detects changes and runs queries; the tool that models call
index  splits files into passages, and searches them
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
