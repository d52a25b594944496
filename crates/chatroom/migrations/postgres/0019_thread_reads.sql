-- Up to where a member has read a thread that they opened by itself: `root_seq` is the message that it began with.
-- A thread that has no row here is read with its room.
CREATE TABLE thread_reads (
    room_id  TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    root_seq BIGINT NOT NULL,
    read_seq BIGINT NOT NULL,
    PRIMARY KEY (room_id, user_id, root_seq)
);
