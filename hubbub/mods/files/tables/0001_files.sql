CREATE TABLE files_file (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    thread TEXT,
    uploaded_by TEXT NOT NULL,
    at REAL NOT NULL,
    outside INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    no_text TEXT NOT NULL,
    cut INTEGER NOT NULL,
    deleted_by TEXT,
    deleted_at REAL
);

-- Who reads one of these threads may read the file. Reply threads stand under their root.
CREATE TABLE files_grant (
    file INTEGER NOT NULL,
    thread TEXT NOT NULL,
    PRIMARY KEY (file, thread)
) WITHOUT ROWID;

-- What is found of files: their names, and how their texts begin.
CREATE VIRTUAL TABLE files_found USING fts5 (
    name, text, tokenize = "unicode61 remove_diacritics 2"
);
