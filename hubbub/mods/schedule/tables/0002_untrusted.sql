ALTER TABLE schedule_reminder RENAME COLUMN outside TO untrusted;
