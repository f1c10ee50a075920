package script_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

const (
	// grace is how long a script can continue after its deadline on a machine
	// that has nothing else to do, and growth what it may make of the heap.
	grace  = 100 * time.Millisecond
	growth = 400 << 20
	// tries is how often a machine that has other things to do may be late.
	tries = 5
)

// within repeats a measurement until it is within a time and the growth once.
// The time is measured on an idle machine: how slow the
// machine is now is measured each time.
func within(t *testing.T, limit time.Duration, measure func() (took time.Duration, grown uint64)) {
	t.Helper()
	for try := 1; ; try++ {
		took, grown := measure()
		allowed := limit
		if took > allowed {
			allowed = time.Duration(float64(limit) * slowness())
		}
		if t.Failed() || took <= allowed && grown <= growth {
			return
		}
		if try == tries {
			t.Errorf("took %v (at most %v), and the heap grew by %d MiB (at most %d)", took, allowed, grown>>20, growth>>20)
			return
		}
	}
}

// slowness returns how many times as long a piece of work takes as on a machine
// that is just fast enough, and at least 1. It is the work of the slowest
// single instruction.
func slowness() float64 {
	const nominal = 25 * time.Millisecond
	begin := time.Now()
	var list []any
	for i := range 1 << 20 {
		list = append(list, i&127)
	}
	runtime.KeepAlive(list)
	return max(1, float64(time.Since(begin))/float64(nominal))
}

// peak returns how far the heap grows while f runs.
func peak(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 { metrics.Read(sample); return sample[0].Value.Uint64() }
	runtime.GC()
	before := heap()
	end, result := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		most := before
		for {
			most = max(most, heap())
			select {
			case <-tick.C:
			case <-end:
				result <- most - before
				return
			}
		}
	}()
	f()
	close(end)
	return <-result
}

// hostileEnv is what hostile scripts see: actions that answer, fail and hang,
// a log, and a string that is nearly as long as a string may be.
func hostileEnv() script.Env {
	return script.Env{
		Globals: script.Values{"big": strings.Repeat("a", 16_000_000)},
		Log:     func(slog.Level, string, map[string]any) {},
		Action: func(ctx context.Context, name string, params any) (any, error) {
			switch name {
			case "fail":
				return nil, errors.New("failed")
			case "hang":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return params, nil
		},
	}
}

// TestGarbageDoesNotCountAsGrowth makes much more garbage than the limit: the run has to
// wait for collections, and continues.
func TestGarbageDoesNotCountAsGrowth(t *testing.T) { //nolint:paralleltest // memory is measured for the whole process
	peertest.Long(t, "it takes seconds")
	rt := script.New(script.Options{Timeout: 10 * time.Minute, MemoryBytes: 40 << 20})
	for name, steps := range map[string]int{"by the clock": 0, "by instructions": 1 << 20} { //nolint:paralleltest // as above
		t.Run(name, func(t *testing.T) {
			env := hostileEnv()
			env.Steps = steps
			got, err := evalWith(t, rt, `local n = 0 for i = 1, 200 do local s = big:sub(2) .. i n = n + #s end return n > 0`, env)
			if err != nil || got != true {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
