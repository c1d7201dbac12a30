-- What participants remember, as JSON.
CREATE TABLE memory (
    participant TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (participant, key)
);
