-- Times are unix seconds unless the name ends in _ms. Room and user ids are text.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE rooms (
    room_id               TEXT PRIMARY KEY,
    name                  TEXT NOT NULL,
    owner_user_id         TEXT NOT NULL,
    visibility            TEXT NOT NULL,
    archived              BOOLEAN NOT NULL DEFAULT FALSE,
    created_at            BIGINT NOT NULL,
    max_reply_chain_depth BIGINT NOT NULL DEFAULT 5,
    -- The room's newest place in its order of events: the newest message, and how many
    -- events without a seq came after it.
    last_seq              BIGINT NOT NULL DEFAULT 0,
    last_sub              BIGINT NOT NULL DEFAULT 0,
    -- Events without a seq up to this place are no longer kept.
    pruned_seq            BIGINT NOT NULL DEFAULT 0,
    pruned_sub            BIGINT NOT NULL DEFAULT 0,
    rules_content         TEXT NOT NULL DEFAULT '',
    rules_version         BIGINT NOT NULL DEFAULT 0,
    rules_updated_at      BIGINT,
    rules_updated_by      TEXT,
    data_content          TEXT NOT NULL DEFAULT '',
    data_version          BIGINT NOT NULL DEFAULT 0,
    data_updated_at       BIGINT,
    data_updated_by       TEXT
) WITHOUT ROWID;
CREATE INDEX rooms_by_visibility ON rooms (visibility, archived, created_at, room_id);
CREATE INDEX rooms_by_age ON rooms (created_at, room_id);
CREATE INDEX rooms_by_archived ON rooms (archived);

CREATE TABLE room_members (
    room_id          TEXT NOT NULL REFERENCES rooms (room_id),
    user_id          TEXT NOT NULL,
    user_name        TEXT,
    member_kind      TEXT NOT NULL,
    role             TEXT NOT NULL,
    adapter_type     TEXT NOT NULL,
    joined_at        BIGINT NOT NULL,
    agent_endpoint   TEXT,
    -- Encrypted; the prefix is what may be shown.
    akm_key          TEXT,
    akm_prefix       TEXT,
    container_id     TEXT,
    key_stale        BOOLEAN NOT NULL DEFAULT FALSE,
    agent_card_url   TEXT,
    -- Which claim to an external id this member rests on; see docs/adr/0003.
    lineage          TEXT,
    PRIMARY KEY (room_id, user_id)
) WITHOUT ROWID;
CREATE INDEX room_members_by_user ON room_members (user_id, room_id);

CREATE TABLE messages (
    room_id           TEXT NOT NULL,
    seq               BIGINT NOT NULL,
    sender_user_id    TEXT NOT NULL,
    sender_user_name  TEXT,
    via               TEXT NOT NULL,
    type              TEXT NOT NULL,
    content           TEXT NOT NULL,
    reply_to_seq      BIGINT,
    reply_chain_depth BIGINT NOT NULL,
    created_at        BIGINT NOT NULL,
    deleted           BOOLEAN NOT NULL DEFAULT FALSE,
    edited_at         BIGINT,
    original_content  TEXT,
    client_key        TEXT,
    PRIMARY KEY (room_id, seq)
) WITHOUT ROWID;
-- By sender within blocks of 512 messages: an index by sender alone would make every post write a
-- page of its own. A query goes from block to block.
CREATE INDEX messages_by_sender ON messages (room_id, seq / 512, sender_user_id, seq);
CREATE UNIQUE INDEX messages_by_client_key ON messages (room_id, sender_user_id, client_key)
    WHERE client_key IS NOT NULL;

CREATE TABLE mentions (
    room_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    PRIMARY KEY (room_id, user_id, seq)
) WITHOUT ROWID;

CREATE INDEX mentions_by_message ON mentions (room_id, seq);

CREATE TABLE reactions (
    room_id    TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    emoji      TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, seq, emoji, user_id)
) WITHOUT ROWID;

-- The events that have no seq of their own. With the messages they are the room's log.
CREATE TABLE events (
    room_id TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    sub     BIGINT NOT NULL,
    kind    TEXT NOT NULL,
    -- The message it is about, where its data is that message.
    about   BIGINT,
    data    TEXT NOT NULL,
    PRIMARY KEY (room_id, seq, sub)
) WITHOUT ROWID;

CREATE TABLE invites (
    jti          TEXT PRIMARY KEY,
    room_id      TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    display_name TEXT,
    max_uses     BIGINT NOT NULL,
    uses         BIGINT NOT NULL DEFAULT 0,
    issued_at    BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    revoked      BOOLEAN NOT NULL DEFAULT FALSE,
    code_hash    TEXT NOT NULL UNIQUE
) WITHOUT ROWID;
CREATE INDEX invites_by_room ON invites (room_id, issued_at);

CREATE TABLE room_keys (
    jti        TEXT PRIMARY KEY,
    room_id    TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    scope      TEXT NOT NULL,
    -- 'web' or 'agent': what the key's holder posts as.
    posts_as   TEXT NOT NULL,
    -- Whether it came from POST /room-keys; the rest are member tokens.
    shared     BOOLEAN NOT NULL,
    lineage    TEXT,
    issued_at  BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked    BOOLEAN NOT NULL DEFAULT FALSE
) WITHOUT ROWID;
CREATE INDEX room_keys_by_user ON room_keys (room_id, user_id, issued_at);

CREATE TABLE share_codes (
    code_hash  TEXT PRIMARY KEY,
    room_id    TEXT NOT NULL,
    jti        TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked    BOOLEAN NOT NULL DEFAULT FALSE
) WITHOUT ROWID;

CREATE TABLE identities (
    jti        TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL,
    lineage    TEXT,
    issued_at  BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked    BOOLEAN NOT NULL DEFAULT FALSE
) WITHOUT ROWID;
CREATE INDEX identities_by_user ON identities (user_id);

-- Which owners have invited a lineage.
CREATE TABLE lineage_invites (
    lineage TEXT NOT NULL,
    owner   TEXT NOT NULL,
    PRIMARY KEY (lineage, owner)
) WITHOUT ROWID;

CREATE TABLE rate_windows (
    bucket     TEXT PRIMARY KEY,
    started_ms BIGINT NOT NULL,
    count      BIGINT NOT NULL,
    ends_ms    BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX rate_windows_by_end ON rate_windows (ends_ms);

-- Messages a minute, by node, so that nodes do not wait for each other.
CREATE TABLE traffic (
    minute   BIGINT NOT NULL,
    node     TEXT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (minute, node)
) WITHOUT ROWID;

CREATE TABLE room_audit_log (
    room_id TEXT NOT NULL,
    n       BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT,
    detail  TEXT NOT NULL,
    hash    TEXT NOT NULL,
    PRIMARY KEY (room_id, n)
) WITHOUT ROWID;
