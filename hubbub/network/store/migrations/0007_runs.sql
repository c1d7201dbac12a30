-- The hub's runs on this log, and where the log ended when each began. A position that a client has
-- reached in a run is of this history if the next run began there or later.
CREATE TABLE run (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    since INTEGER NOT NULL
);
