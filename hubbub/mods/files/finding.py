"""Files by their names and by what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.searching import Hit, Search, indexable, snippet_of

__all__ = ["findable", "found", "not_findable"]

# A file that several of the threads have is found once, in the one that is named first.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS id, text, bm25(files_found, 4.0, 1.0) AS score
    FROM files_found WHERE files_found MATCH ?
)
SELECT d.id, min(g.thread), d.name, d.uploaded_by, d.at, f.score, f.text, d.outside
FROM f JOIN files_file AS d ON d.id = f.id JOIN files_grant AS g ON g.file = d.id
WHERE d.deleted_at IS NULL AND g.thread IN (SELECT value FROM json_each(?)){more}
GROUP BY d.id ORDER BY f.score, d.id DESC LIMIT ? OFFSET ?
"""


def findable(id: int, name: str, text: str) -> Statement:
    values = (id, indexable(name.replace("_", " ")), indexable(text))
    return Statement("INSERT INTO files_found (rowid, name, text) VALUES (?, ?, ?)", values)


def not_findable(id: int) -> Statement:
    return Statement("DELETE FROM files_found WHERE rowid = ?", (id,))


async def found(host: Host, search: Search) -> Sequence[Hit]:
    """`Searchable.found`."""
    more, values = search.conditions("d.uploaded_by", "d.at")
    match, threads = search.words.match, json.dumps(list(search.threads))
    rows = await host.rows(
        _FOUND.format(more=more), match, threads, *values, search.limit, search.skip
    )
    return [
        Hit(
            "files",
            f"f{id}",
            thread,
            by,
            at,
            await snippet_of(search.words, text),
            name,
            -score,
            bool(outside),
        )
        for id, thread, name, by, at, score, text, outside in rows
    ]
