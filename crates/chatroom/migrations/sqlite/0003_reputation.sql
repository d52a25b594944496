-- What members have passed of the welcome checklist. What is passed stays passed.
CREATE TABLE welcome_checklist_progress (
    user_id   TEXT NOT NULL,
    check_id  TEXT NOT NULL,
    passed_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, check_id)
) WITHOUT ROWID;
CREATE INDEX reactions_by_user ON reactions (room_id, user_id);

-- Up to which message a room's log is scored; see docs/adr/0004.
CREATE TABLE reputation_rooms (
    room_id    TEXT PRIMARY KEY,
    scored_seq BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Whom a message mentioned when it was posted, kept when it is edited or deleted.
CREATE TABLE first_mentions (
    room_id TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    PRIMARY KEY (room_id, seq, user_id)
) WITHOUT ROWID;

-- Direct replies that others than its author gave to a thread's root.
CREATE TABLE reputation_threads (
    room_id  TEXT NOT NULL,
    root_seq BIGINT NOT NULL,
    replies  BIGINT NOT NULL,
    PRIMARY KEY (room_id, root_seq)
) WITHOUT ROWID;

-- Who has a score, since when. The row is what a user's points are counted under, one at a time.
CREATE TABLE reputation_users (
    user_id        TEXT PRIMARY KEY,
    first_event_at BIGINT
) WITHOUT ROWID;

CREATE TABLE reputation_events (
    id             INTEGER PRIMARY KEY,
    room_id        TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    kind           TEXT NOT NULL,
    points         DOUBLE PRECISION NOT NULL,
    boost          DOUBLE PRECISION NOT NULL,
    source_user_id TEXT NOT NULL,
    source_seq     BIGINT NOT NULL,
    source_emoji   TEXT,
    -- The UTC day of created_at, counted from 1970.
    day            BIGINT NOT NULL,
    created_at     BIGINT NOT NULL
);
CREATE INDEX reputation_events_by_pair ON reputation_events (user_id, kind, source_user_id, day);
CREATE INDEX reputation_events_by_member ON reputation_events (room_id, user_id, created_at, id);
-- A reaction counts once ever; whose message it is follows from the message.
CREATE UNIQUE INDEX reputation_reactions ON reputation_events (room_id, source_seq, source_user_id, source_emoji)
    WHERE kind = 'reaction_received';

-- The events of a day, summed: boosted points, and boosted points times unix seconds. Decay is
-- linear, so a score at any moment follows from the two. Scope is a room, or '*' for all.
CREATE TABLE reputation_days (
    scope   TEXT NOT NULL,
    user_id TEXT NOT NULL,
    day     BIGINT NOT NULL,
    events  BIGINT NOT NULL,
    points  DOUBLE PRECISION NOT NULL,
    moment  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, user_id, day)
) WITHOUT ROWID;
CREATE INDEX reputation_days_by_day ON reputation_days (day);

-- The days above, summed.
CREATE TABLE reputation_totals (
    scope   TEXT NOT NULL,
    user_id TEXT NOT NULL,
    events  BIGINT NOT NULL,
    points  DOUBLE PRECISION NOT NULL,
    moment  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, user_id)
) WITHOUT ROWID;
