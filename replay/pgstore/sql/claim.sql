-- Claims key $1 for owner $2 and a lease of $3, in one statement.
--
-- A record that stands is read and nothing is written: most claims that do not
-- win are duplicates, and a read costs a fifth of a write. Only if none stands
-- does the upsert run. If it meets a record that this statement's snapshot does
-- not show, because it was committed meanwhile, it changes nothing and the
-- statement returns no row: the caller asks again and then sees it.
--
-- The time left is in microseconds, because an interval as text looks as
-- IntervalStyle says.
WITH seen AS MATERIALIZED (
  SELECT false AS won, state, attempt, expires_at, response
    FROM {table}
   WHERE key = $1::bytea AND expires_at > now()
     AND NOT (state = 0 AND owner = $2::bytea)
), taken AS (
  INSERT INTO {table} AS r (key, owner, expires_at)
  SELECT $1::bytea, $2::bytea, now() + $3::interval
   WHERE NOT EXISTS (SELECT FROM seen)
  ON CONFLICT (key) DO UPDATE
    SET owner = EXCLUDED.owner,
        state = 0,
        attempt = CASE WHEN r.state <> 0 THEN 1
                       WHEN r.owner = EXCLUDED.owner THEN r.attempt
                       ELSE r.attempt + 1 END,
        expires_at = EXCLUDED.expires_at,
        response = NULL
    WHERE r.expires_at <= now() OR (r.state = 0 AND r.owner = EXCLUDED.owner)
  RETURNING true AS won, state, attempt, expires_at, response
)
SELECT won, state, attempt,
       (date_part('epoch', expires_at - now()) * 1000000)::bigint AS remaining,
       response
  FROM (SELECT * FROM seen UNION ALL SELECT * FROM taken) AS standing
