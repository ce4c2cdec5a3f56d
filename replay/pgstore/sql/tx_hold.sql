-- Takes lock $1 for the session, unless another has it, and notes in the session
-- whether it did. So the lock outlasts this transaction, as far as tx_pass.sql in
-- the next one.
SELECT set_config('submitonce.held', pg_try_advisory_lock($1::bigint)::text, false)
