-- Reads who holds which of the keys $1, for all waiters of one process at once.
SELECT key, owner, state
  FROM {table}
 WHERE key = ANY ($1::bytea[]) AND expires_at > now()
