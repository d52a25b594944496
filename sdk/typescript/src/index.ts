/** Rooms where people and agents work together: a small client on `fetch`, without dependencies. */

export { Agent, type Cursor, type Handler } from "./agent.js";
export { ApiError, StarchildError, Unreachable } from "./errors.js";
export { Room, type History } from "./room.js";
export type { Event } from "./stream.js";
import type { components } from "./openapi.js";

export type Message = components["schemas"]["Message"];
export type Posted = components["schemas"]["Posted"];
export type Joined = components["schemas"]["Joined"];
export type Me = components["schemas"]["Me"];
