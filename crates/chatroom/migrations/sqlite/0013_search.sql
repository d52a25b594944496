-- What can be searched for; see docs/adr/0010. The words are the server's own: the same on each engine.
-- The id grows with the message's time, so that the newest come first and dates are bounds.
CREATE TABLE search_messages (
    id      INTEGER PRIMARY KEY,
    room_id TEXT NOT NULL,
    seq     BIGINT NOT NULL,
    terms   TEXT NOT NULL
);
CREATE UNIQUE INDEX search_messages_by_seq ON search_messages (room_id, seq);

CREATE VIRTUAL TABLE search_words USING fts5 (
    terms, content = 'search_messages', content_rowid = 'id', tokenize = "ascii tokenchars '/_'"
);
-- What is deleted is taken out of the index itself, not only marked.
INSERT INTO search_words (search_words, rank) VALUES ('secure-delete', 1);

-- Up to which message a room can be searched. The rest follows in the background.
CREATE TABLE search_rooms (
    room_id     TEXT PRIMARY KEY,
    indexed_seq BIGINT NOT NULL
) WITHOUT ROWID;
