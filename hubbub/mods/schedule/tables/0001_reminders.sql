CREATE TABLE schedule_reminder (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    -- Of those that the network's config declares; empty for all others.
    name TEXT NOT NULL,
    thread TEXT NOT NULL,
    text TEXT NOT NULL,
    wakes TEXT NOT NULL,
    at TEXT NOT NULL,
    zone TEXT NOT NULL,
    start REAL NOT NULL,
    due REAL NOT NULL,
    until REAL,
    times INTEGER,
    paused INTEGER NOT NULL,
    problem TEXT NOT NULL,
    outside INTEGER NOT NULL
);

-- Numbers are never used a second time: what was posted under one is not posted again.
CREATE TABLE schedule_last (id INTEGER NOT NULL);
INSERT INTO schedule_last VALUES (0);

CREATE TABLE schedule_day (
    owner TEXT PRIMARY KEY,
    day TEXT NOT NULL,
    fired INTEGER NOT NULL
) WITHOUT ROWID;
