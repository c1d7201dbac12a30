-- How far a participant has read a thread.
CREATE TABLE read_mark (
    participant TEXT NOT NULL,
    thread_no INTEGER NOT NULL,
    tseq INTEGER NOT NULL,
    PRIMARY KEY (participant, thread_no)
) WITHOUT ROWID;

-- What was said before there were marks counts as read by the people who may read it. Positions of
-- threads are looked up by index, which therefore goes to the end of the log first.
INSERT INTO by_thread (thread_no, tseq, seq)
SELECT thread_no, tseq, seq FROM message
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_thread') ORDER BY thread_no, tseq;
UPDATE indexed SET upto = (SELECT coalesce(max(seq), 0) FROM message) WHERE name = 'by_thread';

INSERT INTO read_mark (participant, thread_no, tseq)
SELECT p.id, t.no, (SELECT max(tseq) FROM by_thread WHERE thread_no = t.no) AS last
FROM participant p CROSS JOIN thread t
WHERE p.kind = 'human' AND last IS NOT NULL AND (
    (t.id LIKE 'dm.%' AND instr(t.id || '.', '.' || p.id || '.') > 0)
    OR EXISTS (
        SELECT 1 FROM member m JOIN thread s ON s.no = m.scope
        WHERE m.participant = p.id AND m.until = 9223372036854775807
        AND (t.no = s.no OR substr(t.id, 1, length(s.id) + 2) = s.id || '.t')
    )
);
