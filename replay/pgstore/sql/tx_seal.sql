-- Stores the response together with all that the transaction has done. If a
-- record stands, this must fail and take the transaction with it, so there is no
-- ON CONFLICT. The time is not now(), which is when the transaction began. See
-- seal.sql for the notification.
INSERT INTO {table} (key, owner, state, attempt, expires_at, response)
VALUES ($1::bytea, $2::bytea, 1, $3::integer,
        statement_timestamp() + $4::bigint * interval '1 microsecond', $5::bytea)
RETURNING CASE WHEN NOT pg_try_advisory_xact_lock($6::bigint)
               THEN pg_notify('{channel}', $7::text) END
