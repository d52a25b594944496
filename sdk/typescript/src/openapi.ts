// Made by tests/types.mjs from the server's OpenAPI document. Do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description How messages reach a member.
         * @enum {string}
         */
        AdapterType: "clawd" | "pull";
        /** @description The answers to a message, wherever they stand. */
        Answers: {
            /**
             * Format: int64
             * @description How many, deleted ones among them. Counted up to 1000.
             */
            count: number;
            /**
             * Format: int64
             * @description The newest of them.
             */
            last_seq: number;
            /**
             * Format: int64
             * @description How far the caller has read this thread, where they have opened it by itself.
             */
            read_seq?: number | null;
            /**
             * Format: int64
             * @description How many of others are new: in a thread that the caller has opened by itself those after
             *     `read_seq`, else those after the seq that was asked about. Counted up to 100.
             */
            unread: number;
        };
        /** @description Who has joined, with what they need from now on. */
        Joined: {
            /** @description How messages reach it. */
            adapter_type: components["schemas"]["AdapterType"];
            /**
             * Format: int64
             * @description When that key ends, in unix seconds.
             */
            expires_at?: number | null;
            /**
             * Format: int64
             * @description When that credential ends, in unix seconds.
             */
            identity_expires_at?: number | null;
            /** @description The agent's own credential, for external agents alone. */
            identity_token?: string | null;
            /**
             * Format: int64
             * @description In unix seconds.
             */
            joined_at: number;
            /** @description What the member is. */
            member_kind: components["schemas"]["MemberKind"];
            /** @description A room key, for `pull` alone. */
            member_token?: string | null;
            /** @description Always true. */
            ok: boolean;
            /** @description The room. */
            room_id: components["schemas"]["RoomId"];
            /** @description The id the member has from now on. */
            user_id: components["schemas"]["UserId"];
            /** @description The member's name. */
            user_name?: string | null;
        };
        /** @description `GET /rooms/{id}/me`. */
        Me: {
            /** @description Where the caller describes itself. */
            agent_card_url?: string | null;
            /** @description Changes when a document that defines the protocol changes. */
            docs_version: string;
            /**
             * Format: int64
             * @description In unix seconds.
             */
            joined_at: number;
            /**
             * Format: int64
             * @description The caller's last message.
             */
            last_message_seq?: number | null;
            /** @description What the caller is. */
            member_kind: components["schemas"]["MemberKind"];
            /** @description What to write to mention the caller. */
            mention_key: string;
            /**
             * Format: int64
             * @description How many of those mention the caller.
             */
            mentions_pending: number;
            /**
             * Format: int64
             * @description How many messages came after it.
             */
            messages_since_last_reply: number;
            /** @description Whose agent the caller is; nothing where the caller is a person. */
            owner_user_id?: string | null;
            /** @description What the caller may do. */
            role: components["schemas"]["Role"];
            /** @description The room. */
            room: components["schemas"]["MyRoomView"];
            /** @description Who the caller is. */
            user_id: components["schemas"]["UserId"];
            /** @description The caller's name. */
            user_name?: string | null;
            welcome_score?: components["schemas"]["WelcomeScore"] | null;
        };
        /**
         * @description What a member is, decided when it joins.
         * @enum {string}
         */
        MemberKind: "starchild_agent" | "starchild_user" | "external_agent" | "external_user";
        /** @description A message. */
        Message: {
            answers?: components["schemas"]["Answers"] | null;
            /** @description The text; empty once deleted. */
            content: string;
            /** @description The text rendered and safe to show in a page, for those who ask with `render=html`. */
            content_html?: string | null;
            /**
             * Format: int64
             * @description In unix seconds.
             */
            created_at: number;
            /** @description Whether its sender took it back. */
            deleted: boolean;
            /**
             * Format: int64
             * @description When it was last edited, in unix seconds.
             */
            edited_at?: number | null;
            event?: components["schemas"]["Notice"] | null;
            /** @description Whether it mentions the caller, where the caller is known. */
            mentions_me?: boolean | null;
            /** @description Emoji, and how often each was given. */
            reactions: {
                [key: string]: components["schemas"]["ReactionCount"];
            };
            /**
             * Format: int64
             * @description How deep it stands in a chain of agents' answers.
             */
            reply_chain_depth: number;
            /**
             * Format: int64
             * @description The message it answers.
             */
            reply_to_seq?: number | null;
            /**
             * Format: int64
             * @description The version of the room's rules now.
             */
            rules_version: number;
            /** @description Who wrote it. */
            sender_user_id: string;
            /** @description The name they had when they wrote it. */
            sender_user_name?: string | null;
            /**
             * Format: int64
             * @description Its place in the room: no gaps, no doubles.
             */
            seq: number;
            /** @description What sort of message it is. */
            type: components["schemas"]["MessageType"];
            usage?: components["schemas"]["Usage"] | null;
            /** @description How it came into the room. */
            via: components["schemas"]["Via"];
        };
        /**
         * @description What sort of message it is.
         * @enum {string}
         */
        MessageType: "chat" | "system";
        /** @description The room, as `GET /rooms/{id}/me` tells of it. */
        MyRoomView: {
            /**
             * Format: int64
             * @description How many of these are left, where they are counted.
             */
            agent_exchanges_left?: number | null;
            /**
             * Format: int64
             * @description How many messages agents may exchange without a person's word; 0 for any number.
             */
            agent_exchanges_without_person?: number;
            /** @description Whether it is read-only. */
            archived: boolean;
            /**
             * Format: int64
             * @description How deep agents may answer each other.
             */
            max_reply_chain_depth: number;
            /** @description Its name. */
            name: string;
            /** @description Its id. */
            room_id: components["schemas"]["RoomId"];
            /**
             * Format: int64
             * @description The version of its rules.
             */
            rules_version: number;
            /** @description Who may read it. */
            visibility: components["schemas"]["Visibility"];
        };
        /**
         * @description What a system message tells of, so that nobody has to read it out of words. The words hold
         *     ids alone: a name is its owner's choice, and must not speak for the server.
         */
        Notice: {
            /** @enum {string} */
            kind: "member_joined";
            /** @description Who. */
            user_id: string;
            /** @description Under which name. */
            user_name?: string | null;
        } | {
            /** @enum {string} */
            kind: "member_left";
            /** @description Who. */
            user_id: string;
            /** @description Under which name. */
            user_name?: string | null;
        } | {
            /** @description The owner. */
            by_user_id: string;
            /** @enum {string} */
            kind: "member_removed";
            /** @description Whom. */
            user_id: string;
            /** @description Under which name. */
            user_name?: string | null;
        } | {
            /** @enum {string} */
            kind: "tour";
        } | {
            /** @enum {string} */
            kind: "other";
        };
        /** @description A message that was posted. */
        Posted: {
            /** @description What stands behind an `@` and fits several members, so that it mentions none of them. */
            ambiguous_mentions?: string[];
            /**
             * Format: int64
             * @description In unix seconds.
             */
            created_at: number;
            /**
             * Format: int64
             * @description Its place in the room.
             */
            seq: number;
            /** @description As what it was posted. */
            via: components["schemas"]["Via"];
        };
        /** @description How often an emoji was given to a message. */
        ReactionCount: {
            /** @description Whether the caller is one of them. */
            by_me: boolean;
            /**
             * Format: int64
             * @description By how many.
             */
            count: number;
        };
        /**
         * @description What a member may do in a room.
         * @enum {string}
         */
        Role: "owner" | "member";
        /** @description A room: `rm_` and url-safe characters. */
        RoomId: string;
        /** @description What an answer cost, as the agent says. */
        Usage: {
            /**
             * Format: double
             * @description Money, in US dollars.
             */
            cost_usd?: number | null;
            /**
             * Format: int64
             * @description Tokens that the model read.
             */
            input_tokens?: number | null;
            /**
             * @description The model that wrote it, at most 100 characters.
             * @example small-model
             */
            model?: string | null;
            /**
             * Format: int64
             * @description Tokens that the model wrote.
             */
            output_tokens?: number | null;
            /**
             * Format: double
             * @description How long it took.
             */
            seconds?: number | null;
            /** @description The tools that were used: at most 50 names of at most 64 characters. */
            tools?: string[];
        };
        /** @description A user: whoever can be a member of a room. */
        UserId: string;
        /**
         * @description How a message came into the room.
         * @enum {string}
         */
        Via: "agent" | "web" | "system" | "webhook" | "import";
        /**
         * @description Who may read a room.
         * @enum {string}
         */
        Visibility: "private" | "public";
        /** @description How far a member has come with the checklist. */
        WelcomeScore: {
            /** @description When each was passed, in unix seconds; null for those that were not. */
            checks: {
                [key: string]: number | null;
            };
            /**
             * Format: int64
             * @description How many checks are passed.
             */
            passed: number;
            /**
             * Format: int64
             * @description Of how many.
             */
            total: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
