-- How far each agent that is called has come in its room. The room's messages are the queue:
-- a delivery is the message at a row's place.
CREATE TABLE deliveries (
    room_id    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    -- The first message that is not dealt with yet.
    next_seq   BIGINT NOT NULL,
    -- How often the call for that message has failed, and when it is tried again.
    attempt    BIGINT NOT NULL DEFAULT 0,
    due_ms     BIGINT NOT NULL DEFAULT 0,
    last_error TEXT,
    -- Counts the endpoints and keys the member has had: what a call with an old one found out
    -- says nothing of the new one.
    generation BIGINT NOT NULL DEFAULT 0,
    -- The node that makes the calls, where there are several.
    claimed_by TEXT,
    PRIMARY KEY (room_id, user_id)
);

-- The nodes that make calls. One whose lease has run out makes none.
CREATE TABLE fanout_nodes (
    node           TEXT PRIMARY KEY,
    lease_until_ms BIGINT NOT NULL
);
CREATE INDEX fanout_nodes_by_lease ON fanout_nodes (lease_until_ms);

-- Members who named an endpoint and a key before there was anybody to call them.
INSERT INTO deliveries (room_id, user_id, next_seq)
SELECT m.room_id, m.user_id, r.last_seq + 1
FROM room_members m JOIN rooms r ON r.room_id = m.room_id
WHERE m.agent_endpoint IS NOT NULL AND m.akm_key IS NOT NULL;

CREATE TABLE cli_keys (
    code_hash      TEXT PRIMARY KEY,
    -- The code and the bearer behind it, encrypted.
    sealed_code    TEXT NOT NULL,
    sealed_key     TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    container_id   TEXT NOT NULL,
    agent_endpoint TEXT,
    label          TEXT,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    revoked        BOOLEAN NOT NULL DEFAULT FALSE,
    use_count      BIGINT NOT NULL DEFAULT 0,
    last_used_at   BIGINT
);
CREATE INDEX cli_keys_by_user ON cli_keys (user_id, created_at);
