//go:build !js

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// testTimeout bounds the wait for something that a page does.
const testTimeout = 2 * time.Minute

// storing stores entries without end and reports each one that was acknowledged.
const storing = `
	globalThis.stored = (async () => {
		const tea = await openTea();
		for (let i = START; ; i++) {
			const value = 'x'.repeat(i % 3 ? 20 : 2000) + i;
			await tea.action('ltm.store', { key: 'k' + i, value });
			await fetch('/ack', { method: 'POST', body: String(i) });
		}
	})();
	return 'started';`

// acks are the numbers that pages have reported.
type acks struct {
	mu   sync.Mutex
	all  []int
	more chan struct{}
}

func (a *acks) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var n int
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		return
	}
	a.mu.Lock()
	a.all = append(a.all, n)
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

func (a *acks) numbers() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// killable starts Chromium in a separate process group.
func killable(t *testing.T, profile string) *browser {
	t.Helper()
	return startBrowser(t, profile, chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }))
}

func (b *browser) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-chromedp.FromContext(b.ctx).Browser.Process().Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.stop()
}

// TestNoEntryIsLostWhenTheBrowserIsKilled kills Chromium while a page stores
// entries. TEA_KILLS sets the number of kills.
func TestNoEntryIsLostWhenTheBrowserIsKilled(t *testing.T) {
	t.Parallel()
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("TEA_KILLS")); err == nil {
		kills = min(n, 20)
	}
	s := newSite(t)
	a := &acks{more: make(chan struct{}, 1)}
	s.mux.Handle("/ack", a)
	profile := filepath.Join(t.TempDir(), "profile")
	for n := range kills {
		b := killable(t, profile)
		p := b.open(t, s.URL)
		before := len(a.numbers())
		p.script(strings.ReplaceAll(storing, "START", strconv.Itoa(n*100_000)))
		deadline := time.After(testTimeout)
		for wanted := before + 1 + n; len(a.numbers()) < wanted; {
			select {
			case <-a.more:
			case <-deadline:
				t.Fatalf("the page has stored %d entries, want %d", len(a.numbers()), wanted)
			}
		}
		b.kill(t)
	}
	p := killable(t, profile).open(t, s.URL)
	numbers, err := json.Marshal(a.numbers())
	if err != nil {
		t.Fatal(err)
	}
	got := p.script(fmt.Sprintf(`
		const tea = await openTea();
		const lost = [];
		for (const i of %s) {
			const r = await tea.action('ltm.retrieve', { key: 'k' + i });
			if (r.value !== 'x'.repeat(i %% 3 ? 20 : 2000) + i) lost.push(i);
		}
		return lost;`, numbers))
	if got != "[]" {
		t.Errorf("of %d acknowledged entries these were lost: %s", len(a.numbers()), got)
	}
}

func TestMemoryOfTwoTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := startBrowser(t, filepath.Join(t.TempDir(), "profile"))
	first, second := b.open(t, s.URL), b.open(t, s.URL)
	store := func(p *page, key string) string {
		return p.script(`
			globalThis.tea ??= await openTea();
			return (await tea.action('ltm.store', { key: '` + key + `', value: { text: 'a pot of ` + key + `' } })).stored`)
	}
	search := func(p *page) string {
		return p.script(`
			globalThis.tea ??= await openTea();
			return (await tea.action('ltm.search', { query: 'pot' })).results.map((r) => r.key).sort()`)
	}
	want := func(what, got, want string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	want("the first tab stores", store(first, "green"), "true")
	refused := store(second, "black")
	if !strings.Contains(refused, `"permission_denied"`) || !strings.Contains(refused, "another tab") {
		t.Errorf("the second tab stores: %s, want permission_denied", refused)
	}
	want("the second tab reads", search(second), `["green"]`)
	want("the first tab stores again", store(first, "white"), "true")
	want("the second tab reads again", search(second), `["green","white"]`)
	first.script(`await tea.close(); return ''`)
	want("the second tab takes over", second.script(`
		for (;;) {
			try {
				return (await tea.action('ltm.store', { key: 'black', value: 'a pot of black' })).stored;
			} catch (e) {
				if (e.type !== 'permission_denied') throw e;
			}
		}`), "true")
	want("all entries", search(second), `["black","green","white"]`)
}
