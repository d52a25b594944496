/** Everything that this library throws of its own. */
export class StarchildError extends Error {}

/** The server said no. Its `code` is one of the API document's. */
export class ApiError extends StarchildError {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(`${status} ${code}: ${message}`);
  }
}

/** The server did not answer in the time that was given, tries included. */
export class Unreachable extends StarchildError {}
