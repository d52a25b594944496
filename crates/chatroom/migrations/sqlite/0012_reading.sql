-- Up to where each member has read the room. Whoever is a member already has read everything.
ALTER TABLE room_members ADD COLUMN read_seq BIGINT NOT NULL DEFAULT 0;
UPDATE room_members SET read_seq =
    COALESCE((SELECT r.last_seq FROM rooms r WHERE r.room_id = room_members.room_id), 0);

-- When a member was mentioned, so that the newest mentions over all rooms lie together.
ALTER TABLE mentions ADD COLUMN at BIGINT NOT NULL DEFAULT 0;
UPDATE mentions SET at = COALESCE((SELECT m.created_at FROM messages m
    WHERE m.room_id = mentions.room_id AND m.seq = mentions.seq), 0);
CREATE INDEX mentions_by_user ON mentions (user_id, at, room_id, seq);
