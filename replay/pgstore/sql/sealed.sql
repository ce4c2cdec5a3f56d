-- Tells whether owner $2 has sealed key $1.
SELECT count(*) FROM {table}
 WHERE key = $1::bytea AND owner = $2::bytea AND state = 1
