-- What people allowed MCP clients. One secret is good at a time: the code at first, then the newest refresh token;
-- whoever shows the one before it was robbed, or is the robber.
CREATE TABLE oauth_grants (
    id           TEXT PRIMARY KEY,
    user_id      TEXT NOT NULL,
    user_name    TEXT,
    client_hash  TEXT NOT NULL,
    client_name  TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    prior_hash   TEXT,
    -- While the secret is a code.
    challenge    TEXT,
    redirect_uri TEXT,
    -- The identity that its tokens stand on, once the code was exchanged.
    jti          TEXT,
    expires_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX oauth_grants_by_secret ON oauth_grants (secret_hash);
CREATE INDEX oauth_grants_by_prior ON oauth_grants (prior_hash);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_grants_by_end ON oauth_grants (expires_at);
