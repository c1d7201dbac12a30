-- What is found of documents. The rowid is the document's number, for its title and latest text,
-- or the negative number of a comment.
CREATE VIRTUAL TABLE documents_found USING fts5 (
    title, text, tokenize = "unicode61 remove_diacritics 2"
);
INSERT INTO documents_found (rowid, title, text) SELECT -id, '', text FROM documents_comment;
