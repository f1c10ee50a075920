import type { Run } from "./index.js"

// Messages about a file begin with FILE:LINE:COLUMN or FILE:LINE; a later line can have a hint.
const position = /^((?:[A-Za-z]:)?[^:\n]+:\d+(?::\d+)?): /
const hint = /^ *hint: (.+)$/m

const types: Record<number, string> = {
	400: "validation_error", 401: "permission_denied", 403: "permission_denied", 404: "not_found", 409: "conflict",
	422: "validation_error", 429: "rate_limited", 503: "unavailable", 507: "resource_exhausted",
}

/** Returns the position at the beginning of a message. */
export const positionIn = (message: string): string | undefined => position.exec(message)?.[1]

/**
 * The base class of this package's errors. Programs branch on type. position is FILE:LINE or
 * FILE:LINE:COLUMN of a workflow, and hint says what to do; both are undefined if unknown.
 */
export class TeaError extends Error {
	readonly position: string | undefined
	readonly hint: string | undefined

	constructor(readonly type: string, message: string, at?: string, options?: ErrorOptions) {
		super(message, options)
		this.name = new.target.name
		this.position = at ?? positionIn(message)
		this.hint = hint.exec(message)?.[1]
	}
}

/** The server did not respond, or not as a tea server does. The request may have taken effect. */
export class ConnectionFailed extends TeaError {
	constructor(message: string, cause?: unknown) {
		super("connection_error", message, undefined, { cause })
	}
}

/** The server refused a request with an HTTP status. retryAfter is in seconds, 0 if the server sent none. */
export class ServerError extends TeaError {
	constructor(readonly status: number, message: string, readonly retryAfter = 0) {
		super(types[status] ?? "internal_error", message)
	}
}

/** A run failed, was stopped or is parked. path is the execution of the node that failed. */
export class RunFailed extends TeaError {
	constructor(readonly run: Run, readonly path: string | undefined, at: string | undefined) {
		super(run.error_type ?? run.status, run.error ?? run.parked ?? `run ${run.id} is ${run.status}`, at)
	}
}
