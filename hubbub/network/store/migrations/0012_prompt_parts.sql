-- Prompts are stored in parts, each part of an agent once: most of a prompt stands in the one before.
CREATE TABLE prompt_part (
    agent TEXT NOT NULL,
    digest BLOB NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (agent, digest)
);

-- The digests of the parts, one after the other; empty: the turn has none.
ALTER TABLE turn ADD COLUMN system_prompt BLOB NOT NULL DEFAULT x'';
ALTER TABLE turn ADD COLUMN prompt BLOB NOT NULL DEFAULT x'';

-- Of turns from before, each prompt is one part.
INSERT OR IGNORE INTO prompt_part (agent, digest, text)
SELECT t.agent, part_digest(p.value), p.value FROM turn AS t, json_each(t.start) AS p
WHERE p.key IN ('system_prompt', 'prompt') AND p.value <> '';
UPDATE turn SET
    system_prompt = part_digest(json_extract(start, '$.system_prompt')),
    prompt = part_digest(json_extract(start, '$.prompt')),
    start = json_remove(start, '$.system_prompt', '$.prompt');
