-- Seals key $1 of owner $2 with response $3 for $4. No indexed
-- column changes, so that the update can be heap-only.
--
-- NOTIFY takes a lock of the whole database at commit, so it is sent only if
-- somebody waits. Whoever waits holds the advisory lock $5 in shared mode, and
-- this transaction then cannot have it. It is asked inside the new state, which is
-- 1 either way, because RETURNING would make the server store and send a row.
UPDATE {table}
   SET state = CASE WHEN pg_try_advisory_xact_lock($5::bigint) THEN 1
                    ELSE 1 + length(pg_notify('{channel}', encode($6::bytea, 'hex'))::text) END,
       response = $3::bytea,
       expires_at = now() + $4::interval
 WHERE key = $1::bytea AND owner = $2::bytea AND state = 0
