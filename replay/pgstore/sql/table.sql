-- The records of submitonce. One row is one key.
CREATE TABLE IF NOT EXISTS {table} (
  -- Printable ASCII, kept as bytes so that no collation has a say in it. Keys
  -- made of submit tokens stand in the order of the time they were issued.
  key        bytea       PRIMARY KEY,
  -- The attempt that holds the key or has sealed it: 16 random bytes.
  owner      bytea       NOT NULL,
  -- 0: pending, 1: done.
  state      smallint    NOT NULL DEFAULT 0,
  attempt    integer     NOT NULL DEFAULT 1,
  -- Pending: when the lease ends. Done: when the retention ends. Deliberately
  -- without an index: with one, no seal could be a heap-only update.
  expires_at timestamptz NOT NULL,
  -- Opaque; may be encrypted. Compressed by the server from 2 kB on: of 10 kB of
  -- JSON it makes half, for 35 µs more.
  response   bytea
){layout}
