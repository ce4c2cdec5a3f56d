-- Reads the record that stands under key $1.
SELECT state, attempt,
       expires_at - now() AS remaining,
       response
  FROM {table}
 WHERE key = $1::bytea AND expires_at > now()
