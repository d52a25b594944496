-- Tasks of A2A clients. A task is a message and what answers it, so the room's log holds it; only that
-- its client took it back is nowhere else.
CREATE TABLE a2a_cancels (
    room_id    TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    by_user_id TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (room_id, seq)
);

-- Where a task's changes are sent to.
CREATE TABLE a2a_pushes (
    room_id    TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    -- The member who asked for it, and the key that this was done with: without them it ends.
    user_id    TEXT NOT NULL,
    jti        TEXT,
    id         TEXT NOT NULL,
    -- The address, the token and the credentials, encrypted.
    sealed     TEXT NOT NULL,
    -- Whether a trusted caller named the address.
    trusted    BOOLEAN NOT NULL,
    -- Whether it is told in the words of 0.3.
    older      BOOLEAN NOT NULL,
    -- What it was told last.
    told       TEXT NOT NULL,
    attempt    BIGINT NOT NULL DEFAULT 0,
    due_ms     BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, seq, user_id, id)
);
CREATE INDEX a2a_pushes_by_due ON a2a_pushes (due_ms);
CREATE INDEX a2a_pushes_by_end ON a2a_pushes (expires_at);
