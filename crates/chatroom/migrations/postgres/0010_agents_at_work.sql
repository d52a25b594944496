-- What somebody said to stop: the newest word to each agent. Times are unix seconds.
CREATE TABLE stops (
    room_id      TEXT NOT NULL,
    user_id      TEXT NOT NULL,
    -- The message whose answer is not wanted; whatever the agent does where there is none.
    reply_to_seq BIGINT,
    by_user_id   TEXT NOT NULL,
    at           BIGINT NOT NULL,
    PRIMARY KEY (room_id, user_id)
);
CREATE INDEX stops_by_time ON stops (at);

-- The message that an agent is to be called for once more.
ALTER TABLE deliveries ADD COLUMN retry_seq BIGINT;

-- Requests for consent.
CREATE TABLE consents (
    consent_id   TEXT PRIMARY KEY,
    room_id      TEXT NOT NULL,
    -- The agent that asks.
    user_id      TEXT NOT NULL,
    state        TEXT NOT NULL,
    tool         TEXT NOT NULL,
    summary      TEXT NOT NULL,
    detail       TEXT,
    reply_to_seq BIGINT,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    closed_at    BIGINT,
    decided_by   TEXT,
    reason       TEXT
);
CREATE INDEX consents_by_room ON consents (room_id, created_at, consent_id);
CREATE INDEX consents_open ON consents (room_id, user_id, created_at) WHERE state = 'open';
CREATE INDEX consents_to_expire ON consents (expires_at) WHERE state = 'open';

-- What an answer cost, as JSON, where its agent said so.
ALTER TABLE messages ADD COLUMN usage TEXT;
-- What agents spent, by room and day (days since 1970, UTC). Stays when the agent leaves.
CREATE TABLE usage_days (
    room_id       TEXT NOT NULL,
    user_id       TEXT NOT NULL,
    day           BIGINT NOT NULL,
    turns         BIGINT NOT NULL DEFAULT 0,
    input_tokens  BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cost_usd      DOUBLE PRECISION NOT NULL DEFAULT 0,
    seconds       DOUBLE PRECISION NOT NULL DEFAULT 0,
    -- Whether the room was told that the budget is used up.
    told          BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (room_id, user_id, day)
);
CREATE INDEX usage_days_by_room ON usage_days (room_id, day);
CREATE INDEX usage_days_by_user ON usage_days (user_id, day);
CREATE INDEX rooms_by_owner ON rooms (owner_user_id);
