-- Which messages answer one: for how many there are, wherever they stand. A message that answers none is
-- not in it, so that posting one costs nothing more.
CREATE INDEX messages_by_answered ON messages (room_id, reply_to_seq, seq) WHERE reply_to_seq IS NOT NULL;
