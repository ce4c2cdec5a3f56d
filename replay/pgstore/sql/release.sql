-- Gives key $1 of owner $2 back. See seal.sql for the notification.
DELETE FROM {table}
 WHERE key = $1::bytea AND owner = $2::bytea AND state = 0
RETURNING CASE WHEN NOT pg_try_advisory_xact_lock($3::bigint)
               THEN pg_notify('{channel}', encode($4::bytea, 'hex')) END
