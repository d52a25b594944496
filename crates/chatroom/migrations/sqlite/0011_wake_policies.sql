-- What wakes an agent in a room and what it may spend in a day: as the agent or its owner has set
-- it, and as the room's owner has. Stays when the agent leaves: it does not come back without limits.
CREATE TABLE wake_policies (
    room_id       TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    own_wake      TEXT NOT NULL DEFAULT 'everything',
    own_turns     BIGINT,
    own_tokens    BIGINT,
    own_cost_usd  DOUBLE PRECISION,
    room_wake     TEXT NOT NULL DEFAULT 'everything',
    room_turns    BIGINT,
    room_tokens   BIGINT,
    room_cost_usd DOUBLE PRECISION,
    PRIMARY KEY (room_id, user_id)
) WITHOUT ROWID;
