-- Reads which of the locks $1 are held by an open transaction, and by whom.
SELECT id, pid FROM (
  SELECT (classid::bigint << 32) | objid::bigint AS id, pid
    FROM pg_locks
   WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND mode = 'ExclusiveLock'
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS held
 WHERE id = ANY ($1::bigint[])
