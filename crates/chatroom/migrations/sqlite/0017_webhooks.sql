-- Addresses that post into a room, and addresses that a room's events are sent to.
CREATE TABLE webhooks (
    -- Also the sender of what it posts, and the user of its row in deliveries.
    hook_id         TEXT PRIMARY KEY,
    room_id         TEXT NOT NULL,
    kind            TEXT NOT NULL,
    name            TEXT NOT NULL,
    created_by      TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    -- Of the address that posts.
    code_hash       TEXT,
    -- What deliveries are signed with, and where they go, encrypted.
    sealed_secret   TEXT,
    sealed_url      TEXT,
    -- Scheme, host and port of that address, to be shown.
    target          TEXT,
    trusted         BOOLEAN NOT NULL DEFAULT FALSE,
    events          TEXT NOT NULL DEFAULT '[]',
    enabled         BOOLEAN NOT NULL DEFAULT TRUE,
    disabled_reason TEXT,
    failing_since   BIGINT
) WITHOUT ROWID;
CREATE UNIQUE INDEX webhooks_by_code ON webhooks (code_hash);
CREATE INDEX webhooks_by_room ON webhooks (room_id, created_at, hook_id);

-- A webhook is also told of what has no seq of its own: how many such events after the message before
-- next_seq are dealt with.
ALTER TABLE deliveries ADD COLUMN next_sub BIGINT NOT NULL DEFAULT 0;

-- What was sent to webhooks' addresses lately, without any text.
CREATE TABLE webhook_deliveries (
    hook_id  TEXT NOT NULL,
    seq      BIGINT NOT NULL,
    sub      BIGINT NOT NULL,
    event    TEXT NOT NULL,
    state    TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    status   BIGINT,
    error    TEXT,
    first_at BIGINT NOT NULL,
    last_at  BIGINT NOT NULL,
    PRIMARY KEY (hook_id, seq, sub)
) WITHOUT ROWID;

-- Rooms that are being filled with messages from elsewhere.
CREATE TABLE room_imports (
    room_id    TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;
