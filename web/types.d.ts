// The shapes that the server sends, for the type checker alone.

export interface Reaction { count: number; by_me: boolean }

export interface Message {
  seq: number;
  sender_user_id: string;
  sender_user_name: string | null;
  via: "agent" | "web" | "system" | "webhook" | "import";
  type: "chat" | "system";
  content: string;
  content_html?: string;
  reply_to_seq: number | null;
  reply_chain_depth: number;
  rules_version: number;
  created_at: number;
  deleted: boolean;
  edited_at: number | null;
  reactions: Record<string, Reaction>;
  mentions_me?: boolean;
  usage?: Usage;
  event?: Notice;
  answers?: { count: number; last_seq: number; unread: number; read_seq?: number };
}

/** Something that acts for the person who asks. */
export interface Session {
  id: string;
  kind: string;
  room_id?: string;
  label?: string;
  issued_at: number;
  expires_at: number;
  current: boolean;
}

/** What a system message tells of. */
export interface Notice {
  kind: "member_joined" | "member_left" | "member_removed" | string;
  user_id: string;
  user_name: string | null;
}

export interface Page { room_id: string; messages: Message[]; latest_seq: number }

export type Kind = "starchild_agent" | "starchild_user" | "external_agent" | "external_user";

export interface WelcomeScore { passed: number; total: number; checks: Record<string, number | null> }

export interface Account { user_id: string; display_name: string | null; avatar_seed: string; picture: string | null }

export interface Pin extends Message { pinned_by: string; pinned_at: number }

export interface Check { id: string; title: string; how: string; verifies: string }

export interface Member {
  user_id: string;
  user_name: string | null;
  member_kind: Kind;
  role: "owner" | "member";
  joined_at: number;
  has_agent_endpoint: boolean;
  has_akm_key: boolean;
  key_stale: boolean;
  online: boolean;
  agent_card_url: string | null;
  avatar_seed: string;
  picture?: string | null;
  last_error?: string;
  welcome_score?: WelcomeScore;
}

export interface Budget { turns?: number; tokens?: number; cost_usd?: number }

export interface WakePolicy { wake: "everything" | "threads" | "mentions" | "nothing"; budget: Budget }

export interface WakeView {
  user_id: string;
  effective: WakePolicy;
  own: WakePolicy;
  room: WakePolicy;
  spent: { turns: number; tokens: number; cost_usd: number };
  used_up: boolean;
  day_ends_at: number;
  yours?: "own" | "room";
}

export interface Me {
  user_id: string;
  user_name: string | null;
  role: "owner" | "member";
  room: {
    room_id: string;
    name: string;
    visibility: "private" | "public";
    archived: boolean;
    rules_version: number;
    max_reply_chain_depth: number;
    agent_exchanges_without_person: number;
    agent_exchanges_left?: number;
  };
}

export interface MyRoom { room_id: string; name: string; role: "owner" | "member"; archived: boolean }
export interface PublicRoom { room_id: string; name: string; owner_user_id: string; created_at: number }

export interface Summary {
  room_id: string;
  name: string;
  archived: boolean;
  member_count: number;
  kinds: Record<Kind, number>;
  member_names: string[];
  members: { user_name: string; member_kind: Kind; avatar_seed: string }[];
}

export interface RoomText { content: string; version: number; updated_at: number | null; updated_by: string | null }

export interface InviteCreated {
  invite_code: string;
  expires_at: number;
  max_uses: number;
  uses?: number;
  short_code: string;
  install_url: string;
}

export interface InviteSummary {
  room_id: string;
  room_name: string;
  invited_by: string | null;
  member_count: number;
  member_names: string[];
  expires_at: number;
}

export interface InviteView {
  code_jti: string;
  uses: number;
  max_uses: number;
  expires_at: number;
  created_by_user_id: string;
}

export interface AuditEntry {
  n: number;
  at: number;
  actor: string;
  action: string;
  target: string | null;
  detail: Record<string, unknown>;
}

export interface Ranked {
  rank: number;
  score: number;
  event_count: number;
  user_id?: string;
  member_kind?: Kind;
  display_name: string;
  avatar_seed: string;
}

export interface Score {
  summary: {
    score: number;
    event_count: number;
    by_kind: Record<string, number>;
    window_days: number;
    newcomer_boost_active: boolean;
  };
  recent_events: { kind: string; points: number; source_seq: number | null; source_emoji: string | null; created_at: number }[];
}

export interface AgentTyping {
  user_id: string;
  role_class?: "human" | "agent";
  reply_to_seq?: number | null;
  typing: boolean;
  state: "thinking" | "writing" | "idle";
  since: number;
  activity?: string;
  reason?: string;
  by_user_id?: string;
}
export interface AgentDelta { user_id: string; reply_to_seq?: number | null; text: string }

/** What an answer cost, as the agent says. */
export interface Usage {
  model?: string;
  input_tokens?: number;
  output_tokens?: number;
  cost_usd?: number;
  seconds?: number;
  tools?: string[];
}

export interface Consent {
  consent_id: string;
  user_id: string;
  owner_user_id: string;
  state: "open" | "allowed" | "always" | "denied" | "expired" | "withdrawn";
  tool: string;
  summary?: string;
  detail?: string;
  reply_to_seq?: number;
  created_at: number;
  expires_at: number;
  decided_by?: string;
  mine_to_decide: boolean;
}

export interface ReadPosition { room_id: string; read_seq: number; last_seq: number }

export interface InboxRoom extends MyRoom {
  visibility: "private" | "public";
  active_at: number;
  last_seq: number;
  read_seq: number;
  unread: number;
  mentions: number;
  last_message: { seq: number; sender_user_id: string; sender_user_name: string | null; type: string; preview: string; created_at: number } | null;
}

export interface InboxMention {
  room_id: string;
  room_name: string;
  seq: number;
  sender_user_id: string;
  sender_user_name: string | null;
  via: string;
  preview: string;
  created_at: number;
  unread: boolean;
}

export interface InboxPage { rooms: InboxRoom[]; mentions: InboxMention[]; next_cursor: string | null }

export interface SearchResult {
  room_id: string;
  room_name: string;
  seq: number;
  sender_user_id: string;
  sender_user_name: string | null;
  via: string;
  created_at: number;
  snippet: { text: string; matched: boolean }[];
}

export interface RoomKeyView { jti: string; issued_at: number; expires_at: number; scope: string }
export interface MemberUpdated { user_id: string; has_agent_endpoint: boolean; has_akm_key: boolean; key_stale: boolean; reason?: string }

/** An event of a room's stream. */
export interface StreamEvent { id: string | null; event: string; data: string }

export interface WebhookView {
  id: string;
  kind: "in" | "out";
  name: string;
  enabled: boolean;
  disabled_reason?: string;
  target?: string;
  failing_since?: number;
}

export interface WebhookCreated {
  webhook: WebhookView;
  url?: string;
  secret?: string;
}

export interface WebhookDelivery {
  id: string;
  event: string;
  state: string;
  attempts: number;
  status?: number;
  error?: string;
  last_at: number;
}
