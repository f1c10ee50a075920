package bucket

import (
	"context"
	"errors"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

const (
	// The shortest pause between reads of another holder's head.
	shortestPause = 50 * time.Millisecond
	longestPause  = 2 * time.Second
	// handover is the time for which a released lease is reserved for the device
	// that wanted it.
	handover = 2 * time.Second
)

// acquire takes the lease for a device, and returns the previous head. While
// another device holds the lease, it waits until the holder releases it or has
// not renewed it for the duration of the lease, by the clock of this device.
func acquire(ctx context.Context, b *objstore.Bucket, device string, length, wait time.Duration) (*lease, head, error) {
	g := &lease{bucket: b, self: device}
	began := time.Now()
	var seen head
	var since time.Time
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		now, version, err := readHead(ctx, b)
		asked := time.Now()
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			err = g.create(ctx, length)
			now = head{}
		case err != nil:
			return nil, head{}, err
		default:
			if now.Term != seen.Term || now.Beat != seen.Beat || now.Store != seen.Store {
				seen, since = now, asked
			}
			if !free(now, device, time.Since(since)) {
				if err := g.ask(ctx, now, version); err != nil {
					return nil, head{}, err
				}
				err = waitFor(ctx, pause, began, wait, now)
				if err != nil {
					return nil, head{}, err
				}
				continue
			}
			err = g.take(ctx, now, version, length)
		}
		switch {
		case err == nil:
			return g, now, nil
		case !errors.Is(err, objstore.ErrConflict):
			return nil, head{}, err
		}
	}
}

// free reports whether a device can take the lease. unchanged is the time since this device last saw the holder renew
// it.
func free(h head, device string, unchanged time.Duration) bool {
	switch h.Holder {
	case device: // an earlier process on this copy did not release it
		return true
	case "":
		return h.Wanted == "" || h.Wanted == device || unchanged >= handover
	}
	return unchanged >= h.lease()
}

// ask records in the head that this device waits for the lease.
func (g *lease) ask(ctx context.Context, h head, version string) error {
	if h.Wanted != "" {
		return nil
	}
	h.Wanted = g.self
	if _, err := writeHead(ctx, g.bucket, h, version); !errors.Is(err, objstore.ErrConflict) {
		return err
	}
	return nil // the next read shows which device won
}

// waitFor waits before the next read. It returns an error after the limit.
func waitFor(ctx context.Context, pause time.Duration, began time.Time, limit time.Duration, h head) error {
	if time.Since(began) >= limit {
		busy := tea.Errorf(tea.ConnectionError, "the memory is in use by the device %s (waited %v); end its run, or raise settings.memory.options.wait_seconds", h.Holder, limit)
		if h.Holder == "" {
			busy = tea.Errorf(tea.ConnectionError, "the lease of the memory could not be taken within %v because other devices took it first; raise settings.memory.options.wait_seconds", limit)
		}
		busy.Retryable = true
		return busy
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
