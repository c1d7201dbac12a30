-- Each edit and deletion, by the message (seq) that it is about and its own position. The message
-- that made it is kept whole; nothing follows a deletion.
CREATE TABLE edits_amendment (
    message INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    outside INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (message, seq)
) WITHOUT ROWID;
