-- Reads the record that stands under key $1.
SELECT state, attempt,
       (extract(epoch FROM expires_at - now()) * 1000000)::bigint AS left_us,
       response
  FROM {table}
 WHERE key = $1::bytea AND expires_at > now()
