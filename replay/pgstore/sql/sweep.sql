-- Removes at most $3 expired records from the blocks $1 up to but not $2, and
-- returns the last block that it found any in. An abandoned claim stays for a
-- minute, so that a takeover can count the attempts on. Rows that somebody else
-- is at are left for the next time, and nothing is done while another instance
-- sweeps: the advisory lock $4 lasts as long as this statement.
WITH turn AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock($4::bigint) AS got
), expired AS MATERIALIZED (
  SELECT ctid AS id
    FROM {table}
   WHERE ctid >= $1::text::tid AND ctid < $2::text::tid
     AND expires_at <= now() - CASE state WHEN 0 THEN interval '1 minute' ELSE interval '0' END
     AND (SELECT got FROM turn)
   LIMIT $3::bigint
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM {table} AS r WHERE r.ctid = ANY (ARRAY (SELECT id FROM expired))
  RETURNING r.ctid AS id
)
SELECT (SELECT got FROM turn) AS got, count(*) AS removed, max(id)::text AS last FROM gone
