-- What a user's totals were when a day began, for the days since the user's first event and up to
-- the newest. What counts since a day is the totals less these, so any window reads one row for
-- each user, and these rows lie together.
CREATE TABLE reputation_starts (
    scope   TEXT NOT NULL,
    day     BIGINT NOT NULL,
    user_id TEXT NOT NULL,
    events  BIGINT NOT NULL,
    points  DOUBLE PRECISION NOT NULL,
    moment  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, day, user_id)
) WITHOUT ROWID;
INSERT INTO reputation_starts (scope, day, user_id, events, points, moment)
    WITH RECURSIVE calendar (day) AS (
        SELECT MIN(day) FROM reputation_days
        UNION ALL SELECT day + 1 FROM calendar WHERE day < (SELECT MAX(day) FROM reputation_days)),
    runs AS (
        SELECT scope, user_id, day, LAG(day) OVER upto AS day_before,
            SUM(events) OVER upto - events AS events, SUM(points) OVER upto - points AS points,
            SUM(moment) OVER upto - moment AS moment
        FROM reputation_days WINDOW upto AS (PARTITION BY scope, user_id ORDER BY day))
    SELECT r.scope, c.day, r.user_id, r.events, r.points, r.moment FROM runs r
    JOIN calendar c ON c.day > r.day_before AND c.day <= r.day;
CREATE INDEX reputation_starts_by_day ON reputation_starts (day);

-- The totals are now of all time; nothing is taken out of them. The newest day with events tells
-- whom a board need not look at.
ALTER TABLE reputation_totals ADD COLUMN last_day BIGINT NOT NULL DEFAULT 0;
UPDATE reputation_totals SET last_day = COALESCE((SELECT MAX(d.day) FROM reputation_days d
    WHERE d.scope = reputation_totals.scope AND d.user_id = reputation_totals.user_id), 0);
DROP TABLE reputation_days;
