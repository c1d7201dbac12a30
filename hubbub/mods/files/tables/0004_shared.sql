-- A message shares its files with its readers until it is deleted; 0: an upload or share_file did.
CREATE TABLE files_share (
    file INTEGER NOT NULL,
    thread TEXT NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (file, thread, message)
) WITHOUT ROWID;
INSERT INTO files_share SELECT file, thread, 0 FROM files_grant;
DROP TABLE files_grant;
CREATE INDEX files_shared ON files_share (thread);
CREATE INDEX files_shared_by ON files_share (message) WHERE message > 0;
