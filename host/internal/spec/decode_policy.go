package spec

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// defaultJitter is the value of jitter: true.
const defaultJitter = 0.5

// errorTypes are the error types of tea; an action can have others.
var errorTypes = []string{
	string(tea.ValidationError), string(tea.NotFound), string(tea.PermissionDenied), string(tea.DependencyMissing),
	string(tea.Timeout), string(tea.CircuitOpen), string(tea.ConnectionError), string(tea.QueryError), string(tea.RateLimited), string(tea.ResourceExhausted),
	string(tea.PluginCrashed), string(tea.Canceled), string(tea.BudgetExceeded), string(tea.UnknownOutcome), string(tea.InternalError),
}

// retry reads a retry section; nil if there is none.
func (d *decoder) retry(v element) *Retry {
	if !v.is(source.Map) {
		return nil
	}
	r := d.retryOf(openMapping(v, d.grammar.retry))
	return &r
}

func (d *decoder) retryOf(m mapping) Retry {
	r := Retry{Pos: m.pos(), MaxRetries: m.int("max_retries"), Multiplier: m.float("backoff_multiplier"), Jitter: m.float("jitter"), RetryAfterMax: m.duration("retry_after_max_seconds"), Timeout: m.duration("timeout_seconds")}
	r.Base = d.delay(m, "backoff_base_ms", "base_delay")
	r.Max = d.delay(m, "backoff_max_ms", "max_delay")
	if on := m.bool("jitter"); on != nil {
		share := 0.0
		if *on {
			share = defaultJitter
		}
		r.Jitter = &share
	}
	for _, t := range m.texts("retry_on") {
		r.RetryOn = append(r.RetryOn, t.Value)
		d.checkErrorType(t)
	}
	if r.Base != nil && r.Max != nil && *r.Base > *r.Max {
		d.conflict(m.element, "raise the longest wait or lower the first", "the first wait, %s, is longer than the longest, %s", *r.Base, *r.Max)
	}
	return r
}

// checkErrorType warns of an unknown type. It is not an error, because a plugin's
// action can define other types.
func (d *decoder) checkErrorType(t Text) {
	if slices.Contains(errorTypes, t.Value) {
		return
	}
	hint := diag.Suggest(snakeCase(t.Value), errorTypes)
	if hint == "" {
		hint = "keep it if the action defines it; the types of tea are " + strings.Join(errorTypes, ", ")
	}
	d.diags.Warnf(diagcode.ValueNotAllowed, t.Pos, hint, "%sretry_on: %q is not an error type of tea", d.where, t.Value)
}

// snakeCase converts the name of an exception in another language: asyncio.TimeoutError
// becomes timeout, ConnectionError becomes connection_error.
func snakeCase(name string) string {
	var b strings.Builder
	previous := ' '
	for _, r := range name[strings.LastIndexByte(name, '.')+1:] {
		if unicode.IsUpper(r) && unicode.IsLower(previous) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		previous = r
	}
	if short := strings.TrimSuffix(b.String(), "_error"); slices.Contains(errorTypes, short) {
		return short
	}
	return b.String()
}

// delay reads a wait in milliseconds or in seconds.
func (d *decoder) delay(m mapping, inMillis, inSeconds string) *time.Duration {
	if m.has(inMillis) && m.has(inSeconds) {
		d.conflict(m.key(inSeconds), "keep one of the two", "%s and %s set the same wait", inMillis, inSeconds)
	}
	if m.has(inMillis) {
		return m.duration(inMillis)
	}
	return m.duration(inSeconds)
}

func (d *decoder) errorPolicy(v element) ErrorPolicy {
	if !v.is(source.Map) {
		return ErrorPolicy{}
	}
	m := openMapping(v, d.grammar.errorPolicy)
	return ErrorPolicy{Retry: d.retryOf(m), OnFailure: OnError(m.string("on_failure"))}
}

func (d *decoder) parallel(v element) *Parallel {
	if !v.is(source.Map) {
		return nil
	}
	m := openMapping(v, d.grammar.parallel)
	p := &Parallel{
		Pos: m.pos(), Timeout: orZero(m.duration("timeout_seconds")), FailFast: m.bool("fail_fast"),
		MaxConcurrency: orZero(m.int("max_concurrency")), Retry: d.retry(m.get("retry")),
	}
	if m.get("circuit_breaker").is(source.Map) {
		b := openMapping(m.get("circuit_breaker"), d.grammar.breaker)
		p.Breaker = &Breaker{
			FailureThreshold: orZero(b.int("failure_threshold")), ResetTimeout: orZero(b.duration("reset_timeout")),
			HalfOpenMaxCalls: orZero(b.int("half_open_max_calls")),
		}
	}
	return p
}
