-- Takes the lock $1 that an open transaction holds on its key $2, unless another
-- has it or a record stands: whoever only meets a record must not look like an
-- owner until its transaction has ended. The session's number finds the
-- transaction again if its COMMIT is not answered; the isolation level says
-- whether the record may be read after this.
SELECT CASE WHEN EXISTS (SELECT FROM {table} WHERE key = $2::bytea AND expires_at > statement_timestamp())
            THEN false ELSE pg_try_advisory_xact_lock($1::bigint) END,
       pg_backend_pid(), current_setting('transaction_isolation')
