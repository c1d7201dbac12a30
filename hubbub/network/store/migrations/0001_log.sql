CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE participant (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    card TEXT NOT NULL
) WITHOUT ROWID;

-- Apart from `participant`, because it changes with every acknowledgement.
CREATE TABLE progress (
    participant TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL DEFAULT 0,
    -- Wakes up to here that no turn has taken are settled.
    floor INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE thread (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
);

CREATE TABLE channel (
    name TEXT PRIMARY KEY,
    description TEXT NOT NULL
) WITHOUT ROWID;

-- Messages with this scope and since < seq <= until reach the participant.
CREATE TABLE member (
    participant TEXT NOT NULL,
    scope INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL DEFAULT 9223372036854775807,
    PRIMARY KEY (participant, scope, since)
) WITHOUT ROWID;

-- The log itself. Both tables grow at their end only, whoever speaks to whom, so that a batch of
-- messages writes a handful of pages. What finds a message by anything but its seq are the tables
-- by_* below.
CREATE TABLE message (
    seq INTEGER PRIMARY KEY,
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    scope INTEGER,
    sender TEXT NOT NULL,
    cid TEXT,
    digest INTEGER,
    body TEXT NOT NULL
);

CREATE TABLE delivery (
    seq INTEGER NOT NULL,
    participant TEXT NOT NULL,
    reason TEXT NOT NULL,
    reply TEXT,
    turn TEXT,
    PRIMARY KEY (seq, participant)
) WITHOUT ROWID;

-- The indexes of the log. They follow it in bulk, some thousands of messages at a time and each in
-- its own order: a page of an index is then written once for many messages. Messages above `upto`
-- (the tail) are found by reading the end of the log.
CREATE TABLE indexed (
    name TEXT PRIMARY KEY,
    upto INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO indexed (name, upto)
VALUES ('by_thread', 0), ('by_scope', 0), ('by_participant', 0), ('by_cid', 0);

CREATE TABLE by_thread (
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (thread_no, tseq, seq)
) WITHOUT ROWID;

CREATE TABLE by_scope (
    scope INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (scope, seq)
) WITHOUT ROWID;

CREATE TABLE by_participant (
    participant TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (participant, seq)
) WITHOUT ROWID;

-- Messages have a seq; calls that were no message are written here at once, with their answer.
CREATE TABLE by_cid (
    sender TEXT NOT NULL,
    cid TEXT NOT NULL,
    seq INTEGER,
    digest INTEGER,
    value TEXT,
    PRIMARY KEY (sender, cid)
) WITHOUT ROWID;

-- All deliveries of a participant, those of the tail included.
CREATE VIEW received (participant, seq) AS
SELECT participant, seq FROM by_participant
UNION ALL
SELECT participant, seq FROM delivery
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_participant');

CREATE TABLE turn (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    started_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1,
    start TEXT NOT NULL,
    ended_at REAL,
    "end" TEXT
);
CREATE INDEX turn_agent ON turn (agent);
CREATE INDEX turn_running ON turn (agent) WHERE ended_at IS NULL;

-- Which turn has taken a wake.
CREATE TABLE turn_wake (
    agent TEXT NOT NULL,
    seq INTEGER NOT NULL,
    turn TEXT NOT NULL,
    PRIMARY KEY (agent, seq)
) WITHOUT ROWID;
CREATE INDEX turn_wake_turn ON turn_wake (turn);

CREATE TABLE turn_step (
    turn TEXT NOT NULL,
    n INTEGER NOT NULL,
    step TEXT NOT NULL,
    PRIMARY KEY (turn, n)
) WITHOUT ROWID;

CREATE TABLE turn_sent (
    turn TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (turn, seq)
) WITHOUT ROWID;

CREATE TABLE token (
    sha256 TEXT PRIMARY KEY,
    participant TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX token_participant ON token (participant);
