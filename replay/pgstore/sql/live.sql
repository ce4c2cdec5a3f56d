-- Tells whether anything in a partition still counts: a record that stands, or
-- an abandoned claim whose attempts are still to be counted on.
SELECT EXISTS (
  SELECT FROM {table}
   WHERE expires_at > now() - CASE state WHEN 0 THEN interval '1 minute' ELSE interval '0' END
)
