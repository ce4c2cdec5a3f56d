-- +goose Up
CREATE TABLE IF NOT EXISTS submitonce (
  key        bytea       PRIMARY KEY,
  owner      bytea       NOT NULL,
  state      smallint    NOT NULL DEFAULT 0,
  attempt    integer     NOT NULL DEFAULT 1,
  expires_at timestamptz NOT NULL,
  response   bytea
) WITH (fillfactor = 90);

-- +goose Down
DROP TABLE IF EXISTS submitonce;
