-- Takes the lock that an open transaction holds on its key, unless another has
-- it. The session's number finds the transaction again if its COMMIT is not
-- answered.
SELECT pg_try_advisory_xact_lock($1::bigint), pg_backend_pid()
