-- A checksum of each entry. What was written before gets its own now: from here on nothing in the
-- log is without.
ALTER TABLE message ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
UPDATE message SET sum = entry_sum(
    seq, thread_no, tseq, scope,
    CAST(sender AS BLOB), CAST(cid AS BLOB), digest, CAST(body AS BLOB)
);

-- Where the log ends, written with every batch: an end that was cut off shows.
CREATE TABLE log_end (seq INTEGER NOT NULL);
INSERT INTO log_end SELECT coalesce(max(seq), 0) FROM message;
