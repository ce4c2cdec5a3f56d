-- The records of submitonce. One row is one key; state 0 is pending, 1 is done.
CREATE TABLE IF NOT EXISTS submitonce (
  key      BLOB    PRIMARY KEY,
  owner    BLOB    NOT NULL,
  state    INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  ends_at  INTEGER NOT NULL, -- of the lease or the retention, in ms since 1970
  response BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS submitonce_ends_at ON submitonce (ends_at);
