-- What is to be sent to whom: written in the transaction of the message that it tells of.
CREATE TABLE webhooks_delivery (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    hook TEXT NOT NULL,
    event TEXT NOT NULL,
    -- Of a message: its position in the log, which has the rest. Of other events: the data as JSON.
    seq INTEGER,
    data TEXT,
    at REAL NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL DEFAULT 0,
    outcome TEXT NOT NULL DEFAULT ''
);
CREATE INDEX webhooks_by_hook ON webhooks_delivery (hook, state, n);
