-- What a user's totals were when a day with events of theirs began: what counts since a day is the
-- totals less the first of these from that day on. So any window reads one row for each user.
CREATE TABLE reputation_starts (
    scope   TEXT NOT NULL,
    user_id TEXT NOT NULL,
    day     BIGINT NOT NULL,
    events  BIGINT NOT NULL,
    points  DOUBLE PRECISION NOT NULL,
    moment  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, user_id, day)
);
INSERT INTO reputation_starts (scope, user_id, day, events, points, moment)
    SELECT scope, user_id, day, CAST(SUM(events) OVER upto AS BIGINT) - events, SUM(points) OVER upto - points,
        SUM(moment) OVER upto - moment
    FROM reputation_days WINDOW upto AS (PARTITION BY scope, user_id ORDER BY day);
CREATE INDEX reputation_starts_by_day ON reputation_starts (day);

-- The totals are now of all time; nothing is taken out of them. The newest day with events tells
-- whom a board need not look at.
DROP TABLE reputation_days;
ALTER TABLE reputation_totals ADD COLUMN last_day BIGINT NOT NULL DEFAULT 0;
UPDATE reputation_totals SET last_day = COALESCE((SELECT MAX(s.day) FROM reputation_starts s
    WHERE s.scope = reputation_totals.scope AND s.user_id = reputation_totals.user_id), 0);
