-- The default board of a thread has no name.
CREATE TABLE tasks_board (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    name TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (thread, name)
);

-- `state` is open, claimed, done or cancelled. That a task is blocked follows from its dependencies.
CREATE TABLE tasks_task (
    id INTEGER PRIMARY KEY,
    board INTEGER NOT NULL,
    thread TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    state TEXT NOT NULL,
    owner TEXT,
    priority TEXT NOT NULL,
    labels TEXT NOT NULL,
    due REAL,
    result TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    version INTEGER NOT NULL,
    request TEXT UNIQUE,
    told REAL
);
CREATE INDEX tasks_by_board ON tasks_task (board, state);
CREATE INDEX tasks_by_thread ON tasks_task (thread);
CREATE INDEX tasks_by_owner ON tasks_task (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_by_due ON tasks_task (due) WHERE due IS NOT NULL;

CREATE TABLE tasks_dependency (
    task INTEGER NOT NULL,
    needs INTEGER NOT NULL,
    PRIMARY KEY (task, needs)
) WITHOUT ROWID;
CREATE INDEX tasks_dependents ON tasks_dependency (needs);

-- What made each version of a task.
CREATE TABLE tasks_change (
    task INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    by TEXT NOT NULL,
    what TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (task, version)
) WITHOUT ROWID;
