-- Whether the endpoint was named with a user token from the operator's own networks. Members from
-- before keep what their kind gave them; short codes from before do not.
ALTER TABLE room_members ADD COLUMN endpoint_trusted BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE room_members SET endpoint_trusted = TRUE WHERE member_kind IN ('starchild_agent', 'starchild_user');
ALTER TABLE cli_keys ADD COLUMN endpoint_trusted BOOLEAN NOT NULL DEFAULT FALSE;

-- The invite that a member came with, which a ban ends.
ALTER TABLE room_members ADD COLUMN invite_jti TEXT;

-- Whom a room's owner keeps out.
CREATE TABLE room_bans (
    room_id   TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    user_name TEXT,
    reason    TEXT,
    banned_by TEXT NOT NULL,
    banned_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, user_id)
);

-- Whom the operator keeps out: a user's id or a network.
CREATE TABLE bans (
    subject   TEXT PRIMARY KEY,
    reason    TEXT,
    banned_at BIGINT NOT NULL
);

-- User tokens of these users that were issued before this time are over.
CREATE TABLE token_cutoffs (
    user_id    TEXT PRIMARY KEY,
    not_before BIGINT NOT NULL
);

CREATE INDEX room_keys_by_holder ON room_keys (user_id, issued_at);

-- What each member's name and id look like: the same look, the same row.
CREATE TABLE member_looks (
    room_id TEXT NOT NULL,
    look    TEXT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (room_id, look, user_id)
);
CREATE INDEX member_looks_by_member ON member_looks (room_id, user_id);

-- What a system message tells of, as JSON.
ALTER TABLE messages ADD COLUMN event TEXT;
