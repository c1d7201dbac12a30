-- Whom a message reaches by name first stands in its own row: for nearly every message that is all.
-- `delivery` has the others, and what was delivered before. A body is bytes, as it travels. The
-- checksum is made of other bytes; what did not match the old one does not match the new one.
-- With AUTOINCREMENT SQLite itself writes down how far the log has come (sqlite_sequence), in the
-- statement that inserts: an end that was cut off shows.
CREATE TABLE message_new (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    scope INTEGER,
    sender TEXT NOT NULL,
    cid TEXT,
    digest INTEGER,
    recipient TEXT,
    reason TEXT,
    reply TEXT,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL
);
INSERT INTO message_new
SELECT
    seq, thread_no, tseq, scope, sender, cid, digest, NULL, NULL, NULL, CAST(body AS BLOB),
    renewed_sum(
        seq, thread_no, tseq, scope, CAST(sender AS BLOB), CAST(cid AS BLOB), digest,
        CAST(body AS BLOB), sum
    )
FROM message;
DROP VIEW received;
DROP TABLE message;
ALTER TABLE message_new RENAME TO message;
DELETE FROM sqlite_sequence WHERE name = 'message';
INSERT INTO sqlite_sequence (name, seq) SELECT 'message', seq FROM log_end;
DROP TABLE log_end;

-- A turn is called after whom it belongs to and the message that started it.
ALTER TABLE delivery DROP COLUMN turn;

-- All that reaches a participant by name, the tail included.
CREATE VIEW received (participant, seq) AS
SELECT participant, seq FROM by_participant
UNION ALL
SELECT recipient, seq FROM message
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_participant')
UNION ALL
SELECT participant, seq FROM delivery
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_participant');
