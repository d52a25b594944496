// The shapes that the server sends, for the type checker alone.

export interface Reaction { count: number; by_me: boolean }

export interface Message {
  seq: number;
  sender_user_id: string;
  sender_user_name: string | null;
  via: "agent" | "web" | "system";
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
  event?: Notice;
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
  last_error?: string;
  welcome_score?: WelcomeScore;
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

export interface AgentTyping { user_id: string; reply_to_seq: number; typing: boolean }
export interface AgentDelta { user_id: string; reply_to_seq: number; text: string }
export interface MemberUpdated { user_id: string; has_agent_endpoint: boolean; has_akm_key: boolean; key_stale: boolean; reason?: string }

/** An event of a room's stream. */
export interface StreamEvent { id: string | null; event: string; data: string }
