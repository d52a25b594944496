-- How much agents have said to each other since a person spoke; see docs/adr/0007.
-- The owner's own limit, where there is one.
ALTER TABLE rooms ADD COLUMN exchange_limit BIGINT;
-- Messages of one agent after another's, whose message was the last one, and when the last of them was.
ALTER TABLE rooms ADD COLUMN exchanges BIGINT NOT NULL DEFAULT 0;
ALTER TABLE rooms ADD COLUMN last_agent TEXT;
ALTER TABLE rooms ADD COLUMN exchanged_ms BIGINT NOT NULL DEFAULT 0;

-- The newest message that mentioned or answered a member since its agent's own last one: what the
-- agent answers when it does not say.
ALTER TABLE room_members ADD COLUMN addressed_seq BIGINT;
ALTER TABLE room_members ADD COLUMN addressed_depth BIGINT;
ALTER TABLE room_members ADD COLUMN addressed_at BIGINT;

-- Whether agents are called for a message: notices wake nobody.
ALTER TABLE messages ADD COLUMN calls_agents BOOLEAN NOT NULL DEFAULT TRUE;

-- The answers collected from an agent in the minute that began then.
ALTER TABLE deliveries ADD COLUMN replies BIGINT NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN replies_since_ms BIGINT NOT NULL DEFAULT 0;
