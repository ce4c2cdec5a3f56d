-- Takes the lock that an open transaction holds on its key, unless another has
-- it. The session's number finds the transaction again if its COMMIT is not
-- answered; the isolation level says whether the record may be read after this.
SELECT pg_try_advisory_xact_lock($1::bigint), pg_backend_pid(),
       current_setting('transaction_isolation')
