-- The key or identity token that a credential was made with: it ends with it. See docs/adr/0006.
ALTER TABLE room_keys ADD COLUMN derived_from TEXT;
CREATE INDEX room_keys_by_source ON room_keys (derived_from);
ALTER TABLE identities ADD COLUMN derived_from TEXT;
CREATE INDEX identities_by_source ON identities (derived_from);

-- The lineage that claimed an external id first.
CREATE TABLE id_claims (
    user_id TEXT PRIMARY KEY,
    lineage TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO id_claims (user_id, lineage)
    SELECT i.user_id, MIN(i.lineage) FROM identities i
    WHERE i.lineage IS NOT NULL
    AND i.issued_at = (SELECT MIN(o.issued_at) FROM identities o WHERE o.user_id = i.user_id AND o.lineage IS NOT NULL)
    GROUP BY i.user_id;

-- Whom somebody else's invite let in says nothing of who they are.
DROP TABLE lineage_invites;

-- The member whose place an invite gives back, where its owner has agreed to that.
ALTER TABLE invites ADD COLUMN recovers TEXT;
CREATE INDEX invites_by_maker ON invites (room_id, created_by, revoked);

-- Answers that are given again to whoever asks again with the same Idempotency-Key. Encrypted:
-- they hold tokens.
CREATE TABLE kept_replies (
    id         TEXT PRIMARY KEY,
    caller     TEXT NOT NULL,
    -- What was asked, hashed.
    request    TEXT NOT NULL,
    reply      TEXT NOT NULL,
    kept_at    BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX kept_replies_by_caller ON kept_replies (caller, kept_at);
CREATE INDEX kept_replies_by_age ON kept_replies (kept_at);
