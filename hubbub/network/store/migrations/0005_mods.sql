-- Which of its scripts the tables of a mod have seen.
CREATE TABLE mod_schema (
    mod TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;
