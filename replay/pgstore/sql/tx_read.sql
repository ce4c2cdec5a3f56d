-- Reads the record under key $1, expired or not. It is a statement of its own
-- after the lock, because its snapshot must be younger than the lock. From
-- repeatable read on it is not, so there it is read in a transaction before.
SELECT owner, state, attempt,
       (date_part('epoch', expires_at - statement_timestamp()) * 1000000)::bigint AS remaining,
       response
  FROM {table}
 WHERE key = $1::bytea
