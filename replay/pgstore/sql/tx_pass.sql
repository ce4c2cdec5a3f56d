-- Takes lock $1 over from the session, if tx_hold.sql has got it, so that it is
-- the transaction's alone. CASE keeps the order: nobody else can have it in
-- between.
SELECT CASE WHEN current_setting('submitonce.held')::boolean
            THEN CASE WHEN pg_try_advisory_xact_lock($1::bigint) THEN pg_advisory_unlock($1::bigint) END
            ELSE false END, pg_backend_pid()
