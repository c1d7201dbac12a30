-- Two fields of messages have new names. A message that was damaged stays so.
UPDATE message
SET
    sum = sum_for_body(
        seq, thread_no, tseq, scope, CAST(sender AS BLOB), CAST(cid AS BLOB), digest,
        CAST(recipient AS BLOB), CAST(reason AS BLOB), CAST(reply AS BLOB), CAST(body AS BLOB), sum,
        renamed_fields(CAST(body AS BLOB))
    ),
    body = renamed_fields(CAST(body AS BLOB))
WHERE instr(body, CAST('"outside":' AS BLOB)) OR instr(body, CAST('"spoken_by":' AS BLOB));
