-- Makes room for the record of key $1 where an expired one was seen.
DELETE FROM {table} WHERE key = $1::bytea AND expires_at <= statement_timestamp()
