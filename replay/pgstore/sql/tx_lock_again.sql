-- Takes the lock $1 once more, in the handler's transaction, if tx_lock_first.sql
-- had it. It does not read the table: a serializable transaction would have to
-- account for that.
SELECT CASE WHEN current_setting('submitonce.claimed', true) = 'true'
            THEN pg_try_advisory_xact_lock($1::bigint) ELSE false END,
       pg_backend_pid(), current_setting('transaction_isolation')
