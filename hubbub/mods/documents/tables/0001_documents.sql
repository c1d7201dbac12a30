CREATE TABLE documents_document (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    title TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE INDEX documents_by_thread ON documents_document (thread);

-- Every version as a whole: what was once accepted can be read without any other.
CREATE TABLE documents_version (
    document INTEGER NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    author TEXT NOT NULL,
    at REAL NOT NULL,
    note TEXT NOT NULL,
    lines INTEGER NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (document, version)
) WITHOUT ROWID;

CREATE TABLE documents_comment (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    version INTEGER NOT NULL,
    line INTEGER,
    author TEXT NOT NULL,
    at REAL NOT NULL,
    text TEXT NOT NULL,
    resolved_by TEXT
);
CREATE INDEX documents_comments ON documents_comment (document);
