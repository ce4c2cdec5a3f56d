-- Seals key $1 of owner $2 with response $3 for $4 microseconds. No indexed
-- column changes, so that the update can be heap-only.
--
-- NOTIFY takes a lock of the whole database at commit, so it is sent only if
-- somebody waits. Whoever waits holds the advisory lock $5 in shared mode, and
-- this transaction then cannot have it.
UPDATE {table}
   SET state = 1, response = $3::bytea,
       expires_at = now() + $4::bigint * interval '1 microsecond'
 WHERE key = $1::bytea AND owner = $2::bytea AND state = 0
RETURNING CASE WHEN NOT pg_try_advisory_xact_lock($5::bigint)
               THEN pg_notify('{channel}', $6::text) END
