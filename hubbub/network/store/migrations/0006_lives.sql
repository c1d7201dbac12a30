-- The process that began a turn last, whether it works on it, how many in a row have died in it, and
-- what the turn had sent when it was begun.
ALTER TABLE turn ADD COLUMN life TEXT;
ALTER TABLE turn ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN said INTEGER NOT NULL DEFAULT 0;
