-- The schema of the first release; versions 1 to 12 came before it.

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
--
-- Whom a message reaches by name first stands in its own row: for nearly every message that is all;
-- `delivery` has the others. A body is bytes, as it travels; `sum` is the checksum of the row. With
-- AUTOINCREMENT SQLite itself writes down how far the log has come (sqlite_sequence), in the
-- statement that inserts: an end that was cut off shows.
CREATE TABLE message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    scope INTEGER,
    sender TEXT NOT NULL,
    cid TEXT,
    digest INTEGER,
    recipient TEXT,
    reason TEXT,
    reply TEXT,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
);

CREATE TABLE delivery (
    seq INTEGER NOT NULL,
    participant TEXT NOT NULL,
    reason TEXT NOT NULL,
    reply TEXT,
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

-- All that reaches a participant by name, the tail included.
CREATE VIEW received (participant, seq) AS
SELECT participant, seq FROM by_participant
UNION ALL
SELECT recipient, seq FROM message
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_participant')
UNION ALL
SELECT participant, seq FROM delivery
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_participant');

-- `life`: the process that began the turn last, `held`: whether it works on it, `deaths`: how many
-- in a row have died in it, `said`: what the turn had sent when it was begun. Prompts are the digests
-- of their parts, one after the other; empty: the turn has none.
CREATE TABLE turn (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    started_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1,
    start TEXT NOT NULL,
    ended_at REAL,
    "end" TEXT,
    life TEXT,
    held INTEGER NOT NULL DEFAULT 0,
    deaths INTEGER NOT NULL DEFAULT 0,
    said INTEGER NOT NULL DEFAULT 0,
    system_prompt BLOB NOT NULL DEFAULT x'',
    prompt BLOB NOT NULL DEFAULT x''
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

-- Prompts are stored in parts, each part of an agent once: most of a prompt stands in the one before.
CREATE TABLE prompt_part (
    agent TEXT NOT NULL,
    digest BLOB NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (agent, digest)
);

-- How far a participant has read a thread.
CREATE TABLE read_mark (
    participant TEXT NOT NULL,
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    PRIMARY KEY (participant, thread_no)
) WITHOUT ROWID;

-- What participants remember, as JSON.
CREATE TABLE memory (
    participant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (participant, key)
);

-- What people have stopped (`agent`, `thread`, `all`) and what the breaker has opened for (`breaker`).
CREATE TABLE stop (
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (scope, target)
) WITHOUT ROWID;

-- People who speak for agents, until then.
CREATE TABLE takeover (
    agent TEXT PRIMARY KEY,
    by TEXT NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;

-- Approvals in the order in which they were first asked for. Those that a starting hub needs are
-- found by the two narrow indexes, however many there have been.
CREATE TABLE approval (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    turn TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at REAL NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX approval_agent ON approval (agent, no);
CREATE INDEX approval_state ON approval (state, no);
CREATE INDEX approval_unused ON approval (turn) WHERE state IN ('approved', 'denied', 'expired');

-- Requests by the message that asked.
CREATE TABLE request (
    seq INTEGER PRIMARY KEY,
    requester TEXT NOT NULL,
    worker TEXT NOT NULL,
    state TEXT NOT NULL,
    deadline REAL NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX request_requester ON request (requester, seq);
CREATE INDEX request_worker ON request (worker, seq);
CREATE INDEX request_state ON request (state, seq);

-- Accounts of interactions, by the message that opened them: sums.
CREATE TABLE ledger (
    interaction INTEGER PRIMARY KEY,
    wakes INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    usd REAL NOT NULL
);

-- Agents that an interaction has woken (`agent`), limits that it has run into (`limit`).
CREATE TABLE ledger_name (
    interaction INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (interaction, kind, name)
) WITHOUT ROWID;

-- Accounts of agents in threads, a row for a day (YYYY-MM-DD, UTC): sums.
CREATE TABLE spending (
    day TEXT NOT NULL,
    agent TEXT NOT NULL,
    thread_no INTEGER NOT NULL,
    wakes INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    usd REAL NOT NULL,
    PRIMARY KEY (day, agent, thread_no)
) WITHOUT ROWID;

-- Which of its scripts the tables of a mod have seen.
CREATE TABLE mod_schema (
    mod TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- The hub's runs on this log, and where the log ended when each began. A position that a client has
-- reached in a run is of this history if the next run began there or later.
CREATE TABLE run (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    since INTEGER NOT NULL
);
