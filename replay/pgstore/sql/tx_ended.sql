-- Tells whether this server is the primary, and whether session $2 still holds
-- lock $1, that is, whether its transaction is still running.
SELECT NOT pg_is_in_recovery(), EXISTS (
  SELECT FROM pg_locks
   WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = $2::bigint
     AND (classid::bigint << 32) | objid::bigint = $1::bigint
)
