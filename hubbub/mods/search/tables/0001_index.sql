-- One row for each entry of the log that is indexed.
CREATE TABLE search_message (
    row INTEGER PRIMARY KEY,    -- its position, and the rowid of its text
    shows INTEGER,              -- the message whose latest text this is; NULL: nobody's any more
    scope TEXT NOT NULL,        -- the thread at the root, whose readers read it
    thread TEXT NOT NULL,
    sender TEXT NOT NULL,
    at REAL NOT NULL
);

-- The words alone: texts stay in the log. What is outdated stays here too, and is never found,
-- because no row shows it.
CREATE VIRTUAL TABLE search_text USING fts5 (
    text, content = '', tokenize = "unicode61 remove_diacritics 2"
);

CREATE TABLE search_amendment (
    message INTEGER NOT NULL,
    row INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    PRIMARY KEY (message, row)
) WITHOUT ROWID;

-- Everything up to this position is indexed; what is behind it is found out at each start.
CREATE TABLE search_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    done INTEGER NOT NULL
);
INSERT INTO search_state VALUES (1, 0);
