package graph

import (
	"cmp"
	"time"

	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// Defaults of a retry policy that neither the node nor error_policy sets.
const (
	defaultBackoff    = 500 * time.Millisecond
	defaultMaxBackoff = 30 * time.Second
	defaultMultiplier = 2.0
	defaultJitter     = 0.5
	defaultRetryAfter = time.Minute
)

// resolveRetry takes each field from the node, else from the workflow's
// error_policy, else the default.
func resolveRetry(node, policy *spec.Retry) Retry {
	if node == nil {
		node = &spec.Retry{}
	}
	if policy == nil {
		policy = &spec.Retry{}
	}
	r := Retry{
		MaxRetries: first(node.MaxRetries, policy.MaxRetries, 0),
		Policy: backoff.Policy{
			Base:       first(node.Base, policy.Base, defaultBackoff),
			Max:        first(node.Max, policy.Max, defaultMaxBackoff),
			Multiplier: first(node.Multiplier, policy.Multiplier, defaultMultiplier),
			Jitter:     first(node.Jitter, policy.Jitter, defaultJitter),
		},
		RetryAfterMax: first(node.RetryAfterMax, policy.RetryAfterMax, defaultRetryAfter),
		Timeout:       first(node.Timeout, policy.Timeout, 0),
		RetryOn:       node.RetryOn,
	}
	if r.RetryOn == nil {
		r.RetryOn = policy.RetryOn
	}
	return r
}

func first[T any](a, b *T, fallback T) T {
	if a != nil {
		return *a
	}
	if b != nil {
		return *b
	}
	return fallback
}

// resolveParallel merges a node's parallel section with config.parallel.
func resolveParallel(node, config *spec.Parallel, maxConcurrency int) Parallel {
	if node == nil {
		node = &spec.Parallel{}
	}
	if config == nil {
		config = &spec.Parallel{}
	}
	p := Parallel{
		Timeout:        cmp.Or(node.Timeout, config.Timeout),
		FailFast:       first(node.FailFast, config.FailFast, false),
		MaxConcurrency: cmp.Or(node.MaxConcurrency, config.MaxConcurrency, maxConcurrency),
		Retry:          resolveRetry(node.Retry, config.Retry),
		Breaker:        node.Breaker,
	}
	if p.Breaker == nil {
		p.Breaker = config.Breaker
	}
	return p
}
