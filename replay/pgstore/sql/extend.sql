-- Lets the lease of owner $2 on key $1 run for $3 from now, if it
-- would end earlier.
UPDATE {table}
   SET expires_at = greatest(expires_at, now() + $3::interval)
 WHERE key = $1::bytea AND owner = $2::bytea AND state = 0
