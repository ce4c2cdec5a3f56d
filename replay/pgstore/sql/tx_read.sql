-- Reads the record under key $1, expired or not. It is a statement of its own
-- after the lock, because its snapshot must be younger than the lock.
SELECT owner, state, attempt,
       (extract(epoch FROM expires_at - statement_timestamp()) * 1000000)::bigint AS left_us,
       CASE WHEN expires_at > statement_timestamp() THEN response END AS response
  FROM {table}
 WHERE key = $1::bytea
