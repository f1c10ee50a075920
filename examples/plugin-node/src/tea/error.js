// The types of failure after which the same call usually succeeds later.
const TEMPORARY = new Set(["timeout", "connection_error", "rate_limited", "plugin_crashed"]);

/**
 * The failure of an action. Workflows match on its type: validation_error,
 * not_found, permission_denied, dependency_missing, timeout, connection_error,
 * query_error, rate_limited, resource_exhausted, canceled, internal_error, or a
 * type of your own.
 */
export class ActionError extends Error {
  /**
   * @param {string} type
   * @param {string} message
   * @param {object} [options]
   * @param {boolean} [options.retryable] whether tea can retry the call; by default it depends on the type
   * @param {number} [options.retryAfterMs] the least time to wait before the next attempt
   * @param {string} [options.source] the origin of the error, such as the name of a server
   * @param {object} [options.details] further fields for the workflow
   * @param {unknown} [options.cause]
   */
  constructor(type, message, { retryable, retryAfterMs = 0, source = "", details, cause } = {}) {
    super(message, { cause });
    this.name = "ActionError";
    this.type = type;
    this.retryable = retryable ?? TEMPORARY.has(type);
    this.retryAfterMs = retryAfterMs;
    this.source = source;
    this.details = details;
  }

  /** Returns an error that a handler has thrown as an ActionError. */
  static from(error, doing) {
    if (error instanceof ActionError) return error;
    if (error?.name === "AbortError") return new ActionError("canceled", `${doing} was canceled`, { cause: error });
    const text = error instanceof Error ? error.message : String(error);
    return new ActionError("internal_error", `exception in ${doing}: ${text}`, { cause: error });
  }
}
