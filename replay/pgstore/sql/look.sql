-- Reads the record that stands under key $1.
SELECT state, attempt,
       (date_part('epoch', expires_at - now()) * 1000000)::bigint AS remaining,
       response
  FROM {table}
 WHERE key = $1::bytea AND expires_at > now()
