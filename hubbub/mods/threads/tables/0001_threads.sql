-- What people and agents have said about a thread; most threads have no row.
CREATE TABLE threads_thread (
    thread TEXT PRIMARY KEY,
    title TEXT,
    titled_by TEXT,
    resolved_by TEXT,
    resolved_at REAL,
    amendments INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE threads_choice (
    thread TEXT NOT NULL,
    participant TEXT NOT NULL,
    choice TEXT NOT NULL,
    PRIMARY KEY (thread, participant)
) WITHOUT ROWID;
