-- One row says: this participant has reacted to this message with this emoji.
CREATE TABLE reactions_reaction (
    n INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    emoji TEXT NOT NULL,
    participant TEXT NOT NULL,
    thread TEXT NOT NULL,
    tseq INTEGER NOT NULL,
    UNIQUE (seq, emoji, participant)
);
CREATE INDEX reactions_by_thread ON reactions_reaction (thread, tseq);
