-- "IF NOT EXISTS" alone still fails when two processes start at the same moment.
SELECT pg_advisory_xact_lock(hashtext('submitonce outbox'));

CREATE TABLE IF NOT EXISTS outbox_orders (
    order_no text PRIMARY KEY,
    status   text NOT NULL CHECK (status IN ('WAIT_PAY', 'PAID'))
);

CREATE TABLE IF NOT EXISTS outbox_messages (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- What the receiver knows the message by, however often it is delivered.
    key       text NOT NULL UNIQUE,
    order_no  text NOT NULL,
    delivered timestamptz
);
CREATE INDEX IF NOT EXISTS outbox_messages_open ON outbox_messages (id) WHERE delivered IS NULL;

CREATE TABLE IF NOT EXISTS outbox_parcels (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_no text NOT NULL
);
