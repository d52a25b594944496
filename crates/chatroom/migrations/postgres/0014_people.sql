-- What people chose for themselves: a name and a picture. The seed stands for the id where that must not show.
CREATE TABLE accounts (
    user_id      TEXT PRIMARY KEY,
    seed         TEXT NOT NULL,
    name         TEXT,
    picture      BYTEA,
    picture_type TEXT,
    changed_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX accounts_by_seed ON accounts (seed);

-- Older texts of rooms' rules and data.
CREATE TABLE room_texts (
    room_id    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    version    BIGINT NOT NULL,
    content    TEXT NOT NULL,
    updated_at BIGINT,
    updated_by TEXT,
    PRIMARY KEY (room_id, kind, version)
);

-- What a room is about, and the messages that its owner keeps at hand.
ALTER TABLE rooms ADD COLUMN topic TEXT NOT NULL DEFAULT '';
CREATE TABLE pins (
    room_id   TEXT NOT NULL,
    seq       BIGINT NOT NULL,
    pinned_by TEXT NOT NULL,
    pinned_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, seq)
);
