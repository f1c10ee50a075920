package subproc

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

func TestNoCallIsLostDuringSwapsOfAnExclusiveResource(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	storm(t, "exclusive")
}

// safeBuffer is a buffer for a log that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestLongCallDelaysTheSwapOfAnExclusiveResourceAndNoOtherCall(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	dir, set, host := swappable(t, Options{SwapTimeout: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}, "exclusive")
	host.wantVersion(t, "1.0.0")
	goOn := make(chan struct{})
	ended := host.outer(t, "", func(context.Context) { <-goOn })
	replace(t, dir, "2.0.0", "exclusive")
	swapped := make(chan Swap)
	go func() {
		swaps, err := set.Reload(t.Context())
		if err != nil || len(swaps) != 1 {
			t.Error(swaps, err)
		}
		swapped <- swaps[0]
	}()
	for !strings.Contains(log.String(), "is replaced after its running calls") {
		host.wantVersion(t, "1.0.0")
	}
	if want := "swap.outer"; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, &log)
	}
	set.Limit(map[string]any{"swap_timeout_seconds": 60.0}) // enough for any machine
	close(goOn)
	if got := <-ended; got.err != nil || got.Version != "1.0.0" || got.Inner != "1.0.0" {
		t.Errorf("the long call ended on %+v", got)
	}
	if done := <-swapped; done.Err != nil {
		t.Fatal(done.Err)
	}
	host.wantVersion(t, "2.0.0")
}

func TestVersionThatCannotOpenTheExclusiveResourceIsTakenBack(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	for name, traits := range map[string][]string{"refuses": {"refuses", "exclusive"}, "hangs": {"hangs", "exclusive"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, set, host := swappable(t, Options{SwapTimeout: time.Second}, "exclusive")
			host.wantVersion(t, "1.0.0")
			replace(t, dir, "2.0.0", traits...)
			var calling sync.WaitGroup
			stop := make(chan struct{})
			finish := sync.OnceFunc(func() { close(stop); calling.Wait() })
			defer finish()
			calling.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						host.wantVersion(t, "1.0.0")
					}
				}
			})
			done := reload(t, set)
			finish()
			if done.Err == nil || done.Generation != 2 {
				t.Errorf("got %+v, want an error and the second generation", done)
			}
			host.wantVersion(t, "1.0.0")
			set.Limit(map[string]any{"swap_timeout_seconds": 60.0}) // enough for any machine
			replace(t, dir, "3.0.0", "exclusive")
			if done := reload(t, set); done.Err != nil {
				t.Fatal(done.Err)
			}
			host.wantVersion(t, "3.0.0")
		})
	}
}

func TestSwapEndsWithTheHost(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	dir, set, host := swappable(t, Options{}, "exclusive")
	host.wantVersion(t, "1.0.0")
	ended := host.outer(t, "", func(ctx context.Context) { <-ctx.Done() })
	replace(t, dir, "2.0.0", "exclusive")
	reloaded := make(chan error)
	go func() {
		swaps, _ := set.Reload(t.Context())
		reloaded <- swaps[0].Err
	}()
	p := set.named("swap")
	for p.swapping.TryLock() {
		p.swapping.Unlock()
	}
	if err := set.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-reloaded; err == nil {
		t.Error("the swap succeeded")
	}
	wantError(t, (<-ended).err, tea.Canceled)
}

func TestStateIsHandedOver(t *testing.T) {
	t.Parallel()
	dir, set, first := swappable(t, Options{}, "state")
	second := swapHostIn(t, set, t.TempDir())
	count := func(host *swapHost, want int64) {
		t.Helper()
		got, err := host.ask(t.Context(), "swap.count", "")
		if err != nil || got.Count != want {
			t.Errorf("got %+v and %v, want count %d", got, err, want)
		}
	}
	count(first, 1)
	count(first, 2)
	count(second, 1)
	for _, c := range []struct {
		version string
		traits  []string
		want    string
	}{
		{"2.0.0", []string{"state"}, ""},
		{"3.0.0", []string{"state", "forgets"}, "this is not a count"},
		{"4.0.0", []string{"refuses"}, "no longer supported"},
		{"5.0.0", []string{"state", "stuck"}, ""},
		{"6.0.0", []string{"state"}, "export its state: it does not fit"},
	} {
		replace(t, dir, c.version, c.traits...)
		done := reload(t, set)
		if got := set.Bundles()[0].Manifest.Version; (got == c.version) != (c.want == "") {
			t.Errorf("after %s, the version is %s", c.version, got)
		}
		if c.want == "" && done.Err != nil || c.want != "" && (done.Err == nil || !strings.Contains(done.Err.Error(), c.want)) {
			t.Errorf("version %s: got %v, want %q", c.version, done.Err, c.want)
		}
	}
	count(first, 3)
	count(second, 2)
	if left, _ := filepath.Glob(filepath.Join(set.launcher.dir.Path, "state*")); len(left) > 0 {
		t.Errorf("the swaps left %v", left)
	}
}
