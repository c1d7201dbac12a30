-- Two codes of why an agent is not woken have the field's names. A message that was damaged stays so.
UPDATE message AS m
SET
    sum = sum_for_reason(
        seq, thread_no, tseq, scope, CAST(sender AS BLOB), CAST(cid AS BLOB), digest,
        CAST(recipient AS BLOB), CAST(reason AS BLOB), CAST(reply AS BLOB), CAST(body AS BLOB), sum,
        CASE reason WHEN 'dampened' THEN 'loop_limit' ELSE 'breaker_open' END
    ),
    reason = CASE reason WHEN 'dampened' THEN 'loop_limit' ELSE 'breaker_open' END
WHERE reason IN ('dampened', 'latched');
UPDATE delivery
SET reason = CASE reason WHEN 'dampened' THEN 'loop_limit' ELSE 'breaker_open' END
WHERE reason IN ('dampened', 'latched');
