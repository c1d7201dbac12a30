-- What has become of the messages of other networks, by their positions there.
CREATE TABLE transcript_line (
    epoch TEXT NOT NULL,
    seq INTEGER NOT NULL,
    became INTEGER NOT NULL,
    PRIMARY KEY (epoch, seq)
) WITHOUT ROWID;

-- Threads that an import has begun: their messages are all from there, or came after it.
CREATE TABLE transcript_thread (
    thread TEXT PRIMARY KEY,
    epoch TEXT NOT NULL
) WITHOUT ROWID;
