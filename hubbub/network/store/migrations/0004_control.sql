-- What people have stopped (`agent`, `thread`, `all`) and what the breaker has latched (`breaker`).
CREATE TABLE halt (
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
