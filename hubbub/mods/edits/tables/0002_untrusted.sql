ALTER TABLE edits_amendment RENAME COLUMN outside TO untrusted;
