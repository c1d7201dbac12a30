CREATE TABLE directory_entry (
    id INTEGER PRIMARY KEY,
    participant TEXT NOT NULL UNIQUE,
    known TEXT NOT NULL     -- a digest of the card whose words stand in directory_text
);

CREATE VIRTUAL TABLE directory_text USING fts5 (
    name, skills, about, tokenize = "porter unicode61 remove_diacritics 2"
);

-- What participants have changed of their cards themselves, as JSON.
CREATE TABLE directory_own (
    participant TEXT PRIMARY KEY,
    changes TEXT NOT NULL,
    at REAL NOT NULL
) WITHOUT ROWID;
