package local

import (
	"context"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// maxPacedHosts bounds the number of hosts that a pace remembers.
const maxPacedHosts = 4096

// pace spaces the requests to each host. The zero value is ready to use. It is
// safe for concurrent use.
type pace struct {
	mu   sync.Mutex
	next map[string]time.Time // start of the next request, by host
}

// wait blocks until the next request to a host may start. It returns a rate_limited
// error if that is after the context's deadline.
func (p *pace) wait(ctx context.Context, host string, delay time.Duration) error {
	now := time.Now()
	p.mu.Lock()
	at := p.next[host]
	if at.Before(now) {
		at = now
	}
	if deadline, ok := ctx.Deadline(); ok && at.After(now) && at.After(deadline) {
		p.mu.Unlock()
		e := tea.Errorf(tea.RateLimited, "too many requests to %s are waiting for their turn; lower their number, or settings.web.host_delay", host)
		e.Source, e.RetryAfter = host, at.Sub(now)
		return e
	}
	if delay > 0 {
		p.reserve(host, at.Add(delay), now)
	}
	p.mu.Unlock()
	return backoff.Sleep(ctx, at.Sub(now))
}

func (p *pace) reserve(host string, next, now time.Time) {
	if p.next == nil {
		p.next = map[string]time.Time{}
	}
	if len(p.next) >= maxPacedHosts {
		for other, at := range p.next {
			if at.Before(now) {
				delete(p.next, other)
			}
		}
	}
	p.next[host] = next
}
