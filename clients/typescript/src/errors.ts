import type { Run } from "./index.js"

// Messages about a file begin with FILE:LINE:COLUMN or FILE:LINE, and have a line with the hint.
const position = /^((?:[A-Za-z]:)?[^:\n]+:\d+(?::\d+)?): /
const hint = /^ *hint: (.+)$/m

const types: Record<number, string> = {
	400: "validation_error", 401: "permission_denied", 403: "permission_denied", 404: "not_found", 409: "conflict",
	422: "validation_error", 429: "rate_limited", 503: "unavailable", 507: "resource_exhausted",
}

/** Returns the position with which a message begins. */
export const positionIn = (message: string): string | undefined => position.exec(message)?.[1]

/**
 * The base class of this package's errors. type is what a program branches on. position is
 * FILE:LINE or FILE:LINE:COLUMN of a workflow, and hint says what to do; both are undefined
 * where they are unknown.
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

/** The server did not answer, or not as a tea server does. A request may have had its effect. */
export class ConnectionFailed extends TeaError {
	constructor(message: string, cause?: unknown) {
		super("connection_error", message, undefined, { cause })
	}
}

/** The server refused a request with an HTTP status. retryAfter is in seconds, 0 if it gave none. */
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
