CREATE TABLE IF NOT EXISTS shop_orders (
    id         INTEGER PRIMARY KEY,
    order_no   TEXT NOT NULL UNIQUE,
    -- The key of the submit that made the order. It is unique, so that an attempt
    -- that takes over from a dead one finds that one's order instead of adding one.
    submit_key TEXT NOT NULL UNIQUE,
    item       TEXT NOT NULL,
    quantity   INTEGER NOT NULL CHECK (quantity > 0),
    placed_at  TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
