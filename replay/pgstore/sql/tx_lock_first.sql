-- Is tx_lock.sql in the short transaction before the handler's, which remembers
-- in the session whether it got the lock.
WITH turn AS MATERIALIZED (
  SELECT CASE WHEN EXISTS (SELECT FROM {table} WHERE key = $2::bytea AND expires_at > statement_timestamp())
              THEN false ELSE pg_try_advisory_xact_lock($1::bigint) END AS got
)
SELECT got, pg_backend_pid(), set_config('submitonce.claimed', got::text, false) FROM turn
