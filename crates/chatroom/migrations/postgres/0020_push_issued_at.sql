-- When the user token was issued that a task's notifications were asked for with: they end when it does.
ALTER TABLE a2a_pushes ADD COLUMN issued_at BIGINT;
