-- Rooms whose readers have to prove anew that they may read. Each node follows the newest ones, by
-- the database's clock: a notice on the bus may be lost, a row is not.
CREATE TABLE revocations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    room_id TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX revocations_by_time ON revocations (at);

-- What each node wrote last to find out whether it can write.
CREATE TABLE health_checks (
    node TEXT PRIMARY KEY,
    at INTEGER NOT NULL
);
