package subproc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

// swappable returns a directory with version 1.0.0 of the plugin "swap", its
// set and an open instance.
func swappable(t *testing.T, o Options, traits ...string) (dir string, set *Plugins, host *swapHost) {
	t.Helper()
	dir = t.TempDir()
	replace(t, dir, "1.0.0", traits...)
	o.Dirs = []string{dir}
	set, problems := discover(t, o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return dir, set, swapHostIn(t, set, t.TempDir())
}

// swapHostIn opens an instance with a folder.
func swapHostIn(t *testing.T, set *Plugins, folder string) *swapHost {
	t.Helper()
	inst, err := set.open("swap", tea.Settings{"swap": fmt.Appendf(nil, `{"path": %q}`, folder)})
	if err != nil {
		t.Fatal(err)
	}
	return &swapHost{inst: inst}
}

// reload replaces what has changed and returns the only result.
func reload(t *testing.T, set *Plugins) Swap {
	t.Helper()
	swaps, err := set.Reload(t.Context())
	if err != nil || len(swaps) != 1 {
		t.Fatalf("%d plugins were replaced: %v, %v", len(swaps), swaps, err)
	}
	return swaps[0]
}

func (h *swapHost) wantVersion(t *testing.T, want string) swapResult {
	t.Helper()
	got, err := h.ask(t.Context(), "swap.note", "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != want {
		t.Errorf("version %s answers, want %s", got.Version, want)
	}
	return got
}

func TestCallsEndOnTheGenerationThatTheyBeganOn(t *testing.T) {
	t.Parallel()
	dir, set, host := swappable(t, Options{})
	old := host.wantVersion(t, "1.0.0")
	goOn := make(chan struct{})
	ended := host.outer(t, "slow", func(context.Context) { <-goOn })
	replace(t, dir, "2.0.0")
	want := Swap{Name: "swap", Path: filepath.Join(dir, "tea-plugin-swap"), From: "1.0.0", To: "2.0.0", Generation: 2}
	if diff := cmp.Diff(want, reload(t, set), cmpopts.EquateErrors()); diff != "" {
		t.Error(diff)
	}
	host.wantVersion(t, "2.0.0")
	if proctest.Gone(old.PID) {
		t.Fatal("the old process ended during a call")
	}
	close(goOn)
	end := <-ended
	if diff := cmp.Diff(swapResult{Version: "1.0.0", PID: old.PID, Inner: "1.0.0"}, end.swapResult); diff != "" || end.err != nil {
		t.Error(end.err, diff)
	}
	wantGone(t, old.PID)
	if got := set.Bundles()[0].Manifest.Version; got != "2.0.0" {
		t.Errorf("the set has version %s", got)
	}
}

// A call that was canceled and does not end keeps the old process for the
// grace period only, and it leaves no child.
func TestOldVersionThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	dir, set, host := swappable(t, Options{})
	tokens := &tokenHost{tokens: make(chan string)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := host.inst.Invoke(ctx, &tea.Request{Action: "swap.hold", Host: tokens})
		ended <- err
	}()
	child, err := strconv.Atoi(<-tokens.tokens)
	if err != nil {
		t.Fatal(err)
	}
	gen := set.named("swap").running()
	replace(t, dir, "2.0.0")
	if done := reload(t, set); done.Err != nil {
		t.Fatal(done.Err)
	}
	cancel()
	wantError(t, <-ended, tea.Canceled)
	host.wantVersion(t, "2.0.0")
	<-gen.process.runner.exited
	wantGone(t, child)
}

// silence is how long a host waits for a plugin that never answers.
const silence = 5 * time.Second

// damaged are files in the place of a plugin that must not replace it. Those
// that are silent are given up after silence.
var damaged = map[string]struct {
	put    func(t *testing.T, dir string)
	want   string
	silent bool
}{
	"exits":     {asFake("exits"), "the licence has run out", false},
	"rubbish":   {asFake("rubbish"), "Hello, world!", false},
	"floods":    {asFake("floods"), "not a tea plugin", false},
	"mute":      {asFake("mute"), "no handshake within 5s", true},
	"deaf":      {asFake("deaf"), "no answer within 5s", true},
	"newer":     {asFake("newer"), "version 2", false},
	"net/rpc":   {asFake("netrpc"), "netrpc", false},
	"empty":     {text(""), "not a program for this machine", false},
	"wrong":     {text("\x7fELF but not really"), "not a program for this machine", false},
	"half":      {writeHalf, "", false},
	"no loader": {text("#!/no/such/interpreter\n"), "interpreter", false},
	"renamed":   {traits("renamed"), "another", false},
	"fewer":     {traits("fewer"), "no action swap.outer", false},
	"stricter":  {traits("stricter"), "parameters of swap.note: it requires key, which was optional", false},
	"refuses":   {traits("refuses"), "no longer supported", false},
	"hangs":     {traits("hangs"), "did not accept its settings", true},
	"panics":    {asFake("panics"), "panic: at the start", false},
	"stops":     {asFake("stops"), "no handshake within", true},
	"spills":    {asFake("spills"), "no handshake within 5s", true},
	"large":     {traits("large"), "bytes exceed the limit of 4194304", false},
	"eats":      {traits("eats"), "its limit is 1024 MiB (settings.plugins.swap.memory_mb)", false},
	"slow":      {traits("slow"), "did not accept its settings within 5s", true},
	"verbose":   {traits("verbose"), "larger than the limit (64 MiB)", false},
	"noisy":     {traits("noisy"), "did not accept its settings", true},
}

func asFake(fake string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		replaceBy(t, dir, fmt.Sprintf("#!/bin/sh\nexport %s=tea-plugin-%s\nexec %s\n", scriptVariable, fake, must(os.Executable())))
	}
}

func text(content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		replaceBy(t, dir, content)
	}
}

func traits(traits ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		replace(t, dir, "2.0.0", traits...)
	}
}

// writeHalf writes the first half of a binary.
func writeHalf(t *testing.T, dir string) {
	t.Helper()
	binary, err := os.ReadFile(must(os.Executable()))
	if err != nil {
		t.Fatal(err)
	}
	replaceBy(t, dir, string(binary[:len(binary)/2]))
}

func TestBrokenVersionDoesNotReplaceThePlugin(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	for name, c := range damaged {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := func(_, path string) error { // as the policy of a host with a lock
				_, err := filepath.EvalSymlinks(path)
				return err
			}
			dir, set, host := swappable(t, Options{Verify: asked, StartTimeout: time.Minute})
			set.Limit(limitsIn(t, `{"swap": {"memory_mb": 1024}}`))
			before := host.wantVersion(t, "1.0.0")
			c.put(t, dir)
			o := &set.launcher.options
			normal := *o
			if c.silent {
				o.StartTimeout, o.times.configure = silence, silence
			}
			done := reload(t, set)
			*o = normal
			if done.Err == nil || !strings.Contains(done.Err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", done.Err, c.want)
			}
			if diff := cmp.Diff(before, host.wantVersion(t, "1.0.0")); diff != "" {
				t.Error(diff)
			}
			// It is started again after a crash, although its file is gone.
			died := set.named("swap").running().process.runner.exited
			if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-died
			host.wantVersion(t, "1.0.0")
			replace(t, dir, "3.0.0")
			if done := reload(t, set); done.Err != nil {
				t.Fatal(done.Err)
			}
			host.wantVersion(t, "3.0.0")
		})
	}
}

// tally counts the lines of the file "effects".
func tally(t *testing.T, folder string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// storm makes calls during swaps and checks that each has its effect once.
func storm(t *testing.T, traits ...string) {
	t.Helper()
	calls, swaps := 1000, 10
	if fullSwaps {
		calls, swaps = 10_000, 100
	}
	dir, set, _ := swappable(t, Options{}, traits...)
	folder := t.TempDir()
	const callers = 8
	actions := []string{"swap.note", "swap.stream", "swap.outer"}
	inst := swapHostIn(t, set, folder).inst
	var failed, after sync.Map
	var calling sync.WaitGroup
	left := make(chan int)
	for range callers {
		calling.Go(func() {
			for i := range left {
				host := &swapHost{inst: inst}
				got, err := host.ask(t.Context(), actions[i%len(actions)], fmt.Sprint(i))
				if err != nil {
					failed.Store(i, err)
				}
				after.Store(got.Version, true)
			}
		})
	}
	begun := 0
	for n := range swaps {
		replace(t, dir, fmt.Sprintf("1.0.%d", n+1), traits...)
		swapped := make(chan struct{})
		go func() {
			defer close(swapped)
			if swaps, err := set.Reload(t.Context()); err != nil || len(swaps) != 1 || swaps[0].Err != nil {
				t.Error(swaps, err)
			}
		}()
		// Calls begin during the whole swap, and after it.
		for during := true; during || begun < (n+1)*calls/swaps; {
			select {
			case left <- begun:
				begun++
			case <-swapped:
				during, swapped = false, nil
			}
		}
	}
	close(left)
	calling.Wait()
	failed.Range(func(i, err any) bool { t.Errorf("call %v: %v", i, err); return true })
	counts := tally(t, folder)
	for i := range begun {
		if n := counts[fmt.Sprint(i)]; n != 1 {
			t.Errorf("call %d took effect %d times", i, n)
		}
	}
	if len(counts) != begun || begun < calls {
		t.Errorf("%d calls took effect, %d have begun, want %d or more", len(counts), begun, calls)
	}
	t.Logf("%d calls during %d swaps", begun, swaps)
	versions := 0
	after.Range(func(any, any) bool { versions++; return true })
	if versions < 2 {
		t.Errorf("%d versions answered", versions)
	}
}

// fullSwaps selects the numbers that tea promises, by TEA_SWAPS=full.
var fullSwaps = os.Getenv("TEA_SWAPS") == "full"

func TestNoCallIsLostDuringSwaps(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it replaces processes again and again")
	storm(t)
}

func TestWatchReplacesAPluginWhoseFileIsStable(t *testing.T) {
	t.Parallel()
	dir, set, host := swappable(t, Options{})
	host.wantVersion(t, "1.0.0")
	ticks := make(chan time.Time)
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		set.watch(ctx, ticks)
	}()
	tick := func(n int) {
		for range n {
			ticks <- time.Time{}
		}
	}
	p := set.named("swap")
	until := func(met func() bool) {
		t.Helper()
		end := time.Now().Add(20 * time.Second)
		for range time.Tick(5 * time.Millisecond) { // there is no signal for the end of a swap
			if met() {
				return
			}
			if time.Now().After(end) {
				t.Fatal("nothing happened")
			}
		}
	}
	tick(3)
	replace(t, dir, "2.0.0")
	tick(1) // sees the change
	host.wantVersion(t, "1.0.0")
	tick(1) // the file is stable
	until(func() bool { return p.version().manifest.Version == "2.0.0" })
	host.wantVersion(t, "2.0.0")
	text("")(t, dir)
	tick(2)
	until(func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.refused != nil })
	host.wantVersion(t, "2.0.0")
	replace(t, dir, "3.0.0")
	tick(2)
	until(func() bool { return p.version().manifest.Version == "3.0.0" })
	host.wantVersion(t, "3.0.0")
	stop()
	<-watched
}

// In the store of bundles a version is a link to its own directory. A script
// that reads other files from there can be started again, too.
func TestVersionOfTheStoreIsStartedAgainAfterItsLinkWasReplaced(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), t.TempDir()
	replace(t, store, "1.0.0")
	script := filepath.Join(store, "tea-plugin-swap")
	content, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(store, "rest"), string(content), 0o600)
	write(t, script, "#!/bin/sh\n. \"$(dirname \"$0\")/rest\"\n", 0o755)
	if err := os.Symlink(script, filepath.Join(dir, "tea-plugin-swap")); err != nil {
		t.Fatal(err)
	}
	set, problems := discover(t, Options{Dirs: []string{dir}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	host := swapHostIn(t, set, t.TempDir())
	before := host.wantVersion(t, "1.0.0")
	text("")(t, dir)
	if done := reload(t, set); done.Err == nil {
		t.Fatal("an empty file has replaced the plugin")
	}
	died := set.named("swap").running().process.runner.exited
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-died
	host.wantVersion(t, "1.0.0")
}

// An installation of versions one after the other replaces the link of a plugin
// while hosts start it.
func TestPluginStartsWhileItsLinkIsReplaced(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs into time limits")
	dir := t.TempDir()
	var versions []string
	for _, version := range []string{"1.0.0", "2.0.0"} {
		store := t.TempDir()
		replace(t, store, version)
		versions = append(versions, filepath.Join(store, "tea-plugin-swap"))
	}
	link := func(target string) {
		next := filepath.Join(dir, ".next")
		if err := os.Symlink(target, next); err != nil {
			t.Error(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "tea-plugin-swap")); err != nil {
			t.Error(err)
		}
	}
	link(versions[0])
	cache := t.TempDir()
	for range 10 {
		// A start gives up after so many replacements, however slow it is.
		var installing sync.WaitGroup
		installing.Go(func() {
			installation := time.NewTicker(5 * time.Millisecond)
			defer installation.Stop()
			for i := range replacedTries {
				<-installation.C
				link(versions[(i+1)%2])
			}
		})
		set, problems := discover(t, Options{Dirs: []string{dir}, CacheDir: cache})
		if len(problems) > 0 {
			t.Error(problems)
		} else if _, err := swapHostIn(t, set, t.TempDir()).ask(t.Context(), "swap.note", ""); err != nil {
			t.Error(err)
		}
		installing.Wait()
	}
}
