package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"
)

// checkInterval is the interval of memory checks while a query runs.
const checkInterval = 10 * time.Millisecond

var errMemory = errors.New("the query needs too much memory")

// Watch returns a context that ends when the process has grown by more than limit
// bytes, since the databases do not count all memory of a query. It watches
// nothing if the size of the process is unknown. The caller calls stop at the
// end.
func Watch(ctx context.Context, limit int64) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	before := resident()
	if limit <= 0 || before == 0 {
		return watched, func() { cancel(nil) }
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(checkInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := resident()
			if now-before > limit {
				cancel(errMemory)
				return
			}
			before = min(before, now)
		}
	})
	return watched, func() {
		close(done)
		group.Wait()
		cancel(nil)
	}
}

// resident returns the process's memory in bytes, 0 if unknown.
func resident() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
