-- Names as mentions are compared, so that a mention is looked up and no list of members is read.
-- The server folds the names that are there already when it starts.
ALTER TABLE room_members ADD COLUMN name_folded TEXT;
CREATE INDEX room_members_by_name ON room_members (room_id, name_folded);
CREATE INDEX room_members_by_id_in_any_case ON room_members (room_id, user_id COLLATE NOCASE);
CREATE INDEX room_members_to_fold ON room_members (room_id) WHERE name_folded IS NULL AND user_name IS NOT NULL;
