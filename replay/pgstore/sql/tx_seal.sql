-- Stores the response together with all that the transaction has done. If a
-- record stands, this must fail and take the transaction with it, so there is no
-- ON CONFLICT. The time is not now(), which is when the transaction began. See
-- seal.sql for the notification.
INSERT INTO {table} (key, owner, state, attempt, expires_at, response)
VALUES ($1::bytea, $2::bytea,
        CASE WHEN pg_try_advisory_xact_lock($6::bigint) THEN 1
             ELSE 1 + length(pg_notify('{channel}', encode($7::bytea, 'hex'))::text) END,
        $3::bigint, statement_timestamp() + $4::interval, $5::bytea)
