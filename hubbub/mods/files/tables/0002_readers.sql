CREATE INDEX files_granted ON files_grant (thread);
CREATE INDEX files_by_uploader ON files_file (uploaded_by) WHERE deleted_at IS NULL;
CREATE INDEX files_by_content ON files_file (sha256) WHERE deleted_at IS NULL;
