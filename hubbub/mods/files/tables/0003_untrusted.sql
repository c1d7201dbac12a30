ALTER TABLE files_file RENAME COLUMN outside TO untrusted;
