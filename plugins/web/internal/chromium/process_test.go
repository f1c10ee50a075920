//go:build unix

package chromium

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// eventually waits until a condition is met.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !met(); {
		if time.Now().After(deadline) {
			t.Errorf("%s: not after a minute", what)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// groupEnded reports whether no process of a group runs.
func groupEnded(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

// running returns the process of a browser.
func (b *Browser) running() *process {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	return b.current
}

func TestClosedBrowserLeavesNoProcessesOrFiles(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{"/": "<p>text"})
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	if _, failure := load(t, b, request{url: server.URL + "/"}); failure != nil {
		t.Fatal(failure)
	}
	group, home := b.running().pid, b.running().home.Path
	if groupEnded(group) {
		t.Fatal("the browser does not run")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the browser's processes end", func() bool { return groupEnded(group) })
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the browser: %v", err)
	}
	if _, failure := load(t, b, request{url: server.URL + "/"}); failure == nil || failure.Type != tea.Canceled {
		t.Errorf("after the end: got %v", failure)
	}
}

func TestUnusedBrowserIsStopped(t *testing.T) {
	t.Parallel()
	server := site(t, map[string]string{"/": "<p>text"})
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	b.idleTime = time.Millisecond
	if _, failure := load(t, b, request{url: server.URL + "/"}); failure != nil {
		t.Fatal(failure)
	}
	eventually(t, "the browser is stopped", func() bool { return b.running() == nil })
	if _, failure := load(t, b, request{url: server.URL + "/"}); failure != nil {
		t.Errorf("after it was stopped: %v", failure)
	}
}

func TestBrowserThatIsKilled(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/waits" {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
		io.WriteString(w, "<p>text</p>")
	}))
	t.Cleanup(server.Close)
	b := testBrowser(t, Settings{}, &safenet.Guard{AllowPrivate: true})
	failed := make(chan *tea.Error, 1)
	go func() {
		_, err := b.load(t.Context(), request{url: server.URL + "/waits", maxHTML: 1000})
		failed <- tea.AsError(err)
	}()
	<-arrived
	killed := b.running()
	if err := syscall.Kill(-killed.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if failure := <-failed; failure == nil || failure.Type != tea.ConnectionError || !failure.Retryable {
		t.Errorf("got %v", failure)
	}
	<-killed.ctx.Done() // until then a load can still fail
	if page, failure := load(t, b, request{url: server.URL + "/"}); failure != nil || !strings.Contains(string(page.html), "<p>text</p>") {
		t.Errorf("after the end: got %v, %v", page, failure)
	}
}

// TestMain is also the process that TestPluginThatIsKilled kills.
func TestMain(m *testing.M) {
	if address := os.Getenv("TEA_TEST_LOAD"); address != "" {
		b := New(Settings{}, &safenet.Guard{AllowPrivate: true}, "", 0)
		if _, err := b.load(context.Background(), request{url: address, maxHTML: 1000}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(b.current.pid)
		select {}
	}
	os.Exit(m.Run())
}

// A plugin that is killed leaves no process behind, and its directory is removed
// by the next one.
func TestPluginThatIsKilled(t *testing.T) {
	t.Parallel()
	testBrowser(t, Settings{}, &safenet.Guard{})
	server := site(t, map[string]string{"/": "<p>text"})
	temp, err := os.MkdirTemp("", "tea-web-") //nolint:usetesting // a test's own directory is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	start := func() (cmd *exec.Cmd, group int) {
		cmd = exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "TEA_TEST_LOAD="+server.URL+"/", "TMPDIR="+temp)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		if group, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
			t.Fatalf("the process says %q", line)
		}
		return cmd, group
	}
	kill := func(cmd *exec.Cmd, group int) {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		eventually(t, "the browser's processes end", func() bool { return groupEnded(group) })
	}
	kill(start())
	left, err := filepath.Glob(filepath.Join(temp, homePrefix+"*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("the directories are %v, %v", left, err)
	}
	defer kill(start())
	if _, err := os.Stat(left[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the process that was killed: %v", err)
	}
	if now, _ := filepath.Glob(filepath.Join(temp, homePrefix+"*")); len(now) != 1 {
		t.Errorf("the directories are %v", now)
	}
}

// At most max_pages are loaded at the same time; a caller that stops waiting
// does not wait for the others.
func TestPagesWaitForEachOther(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
		}
		if r.URL.Path == "/waits" {
			<-r.Context().Done()
		}
		io.WriteString(w, "<p>text</p>")
	}))
	t.Cleanup(server.Close)
	b := testBrowser(t, Settings{MaxPages: 1}, &safenet.Guard{AllowPrivate: true})
	results := make(chan *tea.Error, 4)
	for range 4 {
		go func() {
			_, err := b.load(t.Context(), request{url: server.URL + "/page", maxHTML: 1000, wait: 300 * time.Millisecond})
			results <- tea.AsError(err)
		}()
	}
	for range 4 {
		if failure := <-results; failure != nil {
			t.Error(failure)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d pages at the same time", most.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	go b.load(ctx, request{url: server.URL + "/waits", maxHTML: 1000})
	eventually(t, "the page is being loaded", func() bool { return len(b.slots) == 1 })
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := b.load(short, request{url: server.URL + "/", maxHTML: 1000}); tea.AsError(err) == nil || tea.AsError(err).Type != tea.Timeout {
		t.Errorf("got %v", err)
	}
	cancel()
}

func TestBrowserThatDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		path  string
		limit time.Duration
		want  tea.ErrorType
		text  string
	}{
		{filepath.Join(dir, "none"), 2 * time.Minute, tea.DependencyMissing, "set settings.web.chromium.path"},
		{program("fails", "echo no display >&2; exit 1"), 2 * time.Minute, tea.DependencyMissing, "no display"},
		{program("hangs", "sleep 1000"), time.Second, tea.Timeout, "deadline"},
	} {
		b := New(Settings{Path: c.path}, &safenet.Guard{AllowPrivate: true}, "", 0)
		ctx, cancel := context.WithTimeout(t.Context(), c.limit)
		_, err := b.load(ctx, request{url: "http://127.0.0.1:1/", maxHTML: 1000})
		cancel()
		if e := tea.AsError(err); e == nil || e.Type != c.want || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: got %v", filepath.Base(c.path), err)
		}
		b.Close()
	}
}
