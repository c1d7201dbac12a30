-- Up to where a participant has had its digests.
CREATE TABLE digest_visit (
    participant TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;

-- What a model has written: the same text is not paid for twice.
CREATE TABLE digest_summary (
    id INTEGER PRIMARY KEY,
    asked TEXT NOT NULL UNIQUE,     -- a digest of the model's name and of all that it was given
    summary TEXT NOT NULL
);

CREATE TABLE digest_day (
    day TEXT PRIMARY KEY,
    requests INTEGER NOT NULL
) WITHOUT ROWID;
