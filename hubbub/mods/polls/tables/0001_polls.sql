CREATE TABLE polls_poll (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    question TEXT NOT NULL,
    options TEXT NOT NULL,
    secret INTEGER NOT NULL,
    multiple INTEGER NOT NULL,
    quorum INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at REAL NOT NULL,
    deadline REAL,
    changes INTEGER NOT NULL DEFAULT 0,
    closed_at REAL,
    closed_by TEXT,
    voters INTEGER,
    told INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX polls_by_thread ON polls_poll (thread);
CREATE INDEX polls_by_deadline ON polls_poll (deadline) WHERE closed_at IS NULL;
CREATE INDEX polls_untold ON polls_poll (closed_at) WHERE told = 0;

-- Who votes for what. The rows of a secret poll are deleted when it ends.
CREATE TABLE polls_vote (
    poll INTEGER NOT NULL,
    voter TEXT NOT NULL,
    option INTEGER NOT NULL,
    PRIMARY KEY (poll, voter, option)
) WITHOUT ROWID;

-- How many votes each option has got, when the poll has ended.
CREATE TABLE polls_count (
    poll INTEGER NOT NULL,
    option INTEGER NOT NULL,
    votes INTEGER NOT NULL,
    PRIMARY KEY (poll, option)
) WITHOUT ROWID;
