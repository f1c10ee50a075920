package spec

func retryKeys() []*key {
	return []*key{
		{name: "max_retries", shape: integer(0), doc: "Tries after the first."},
		{name: "backoff_base_ms", shape: milliseconds(), doc: "First wait."},
		{name: "base_delay", shape: seconds(), doc: "First wait, in seconds."},
		{name: "backoff_max_ms", shape: milliseconds(), doc: "Longest wait."},
		{name: "max_delay", shape: seconds(), doc: "Longest wait, in seconds."},
		{name: "backoff_multiplier", shape: number(1), doc: "Growth of the wait from try to try."},
		{name: "jitter", shape: boolean().or(number(0, 1)), doc: "Share of the wait that is drawn at random; true is 0.5."},
		{name: "retry_on", shape: listOf(str()), doc: "Error types to retry.", fallback: "those marked retryable"},
	}
}

func retrySection() *section {
	return &section{title: "retry", doc: "How often and how soon a failed call is tried again.", keys: retryKeys()}
}

func errorPolicySection(*grammar) *section {
	return &section{title: "error_policy", doc: "What a failure does; the default of every node.", keys: append(retryKeys(),
		&key{
			name: "on_failure", shape: oneOf(string(OnErrorStop), string(OnErrorCheckpoint), string(OnErrorContinue), string(OnErrorFallback)), fallback: "stop",
			doc: "What happens after the retries; checkpoint_and_exit is stop with the checkpoint promised.",
		})}
}

func parallelSection(g *grammar) *section {
	return &section{title: "parallel", doc: "How the branches of a fan-out run.", keys: []*key{
		{name: "timeout_seconds", shape: seconds(), doc: "Time for each branch; a branch that exceeds it is a result with timeout: true."},
		{name: "fail_fast", shape: boolean(), fallback: "false", doc: "The first failed branch ends the run."},
		{name: "max_concurrency", shape: integer(1), doc: "Branches that run at once."},
		{name: "retry", shape: object(g.retry), doc: "Repeats a whole branch."},
		{name: "circuit_breaker", shape: object(g.breaker), doc: "Stops calling a branch that keeps failing."},
	}}
}

func breakerSection() *section {
	return &section{title: "circuit_breaker", doc: "A circuit breaker per branch: closed, open, half-open.", keys: []*key{
		{name: "failure_threshold", shape: integer(1), doc: "Failures in a row that open it."},
		{name: "reset_timeout", shape: seconds(), doc: "Time until it is half-open."},
		{name: "half_open_max_calls", shape: integer(1), doc: "Calls let through while half-open."},
	}}
}
