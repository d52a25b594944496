-- What can be searched for; see docs/adr/0010. The words are the server's own: the same on each engine.
-- The place grows with the message's time, so that the newest come first and dates are bounds.
CREATE TABLE search_messages (
    room_id TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    place   BIGINT NOT NULL,
    terms   TSVECTOR NOT NULL,
    PRIMARY KEY (room_id, seq)
);
CREATE INDEX search_messages_by_place ON search_messages (place);
CREATE INDEX search_messages_by_term ON search_messages USING GIN (terms);

-- Up to which message a room can be searched. The rest follows in the background.
CREATE TABLE search_rooms (
    room_id     TEXT PRIMARY KEY,
    indexed_seq BIGINT NOT NULL
);
