-- "IF NOT EXISTS" alone still fails when two shops start at the same moment.
SELECT pg_advisory_xact_lock(hashtext('submitonce orderform'));

CREATE TABLE IF NOT EXISTS shop_orders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_no   text NOT NULL UNIQUE,
    -- The key of the submit that made the order. It is unique, so that an attempt
    -- that takes over from a dead one finds that one's order instead of adding one.
    submit_key text NOT NULL UNIQUE,
    item       text NOT NULL,
    quantity   integer NOT NULL CHECK (quantity > 0),
    placed_at  timestamptz NOT NULL DEFAULT now()
);
