package bucket

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const scriptVariable = "TEA_TEST_BUCKET_SCRIPT" // a worker as JSON

// scripted is the number of steps of a script: enough for segments to be merged.
const scripted = 10

// TestKillScript is a process of another test. It does the steps of a script that
// were not acknowledged before, and prints those that are now.
func TestKillScript(t *testing.T) {
	var w worker
	if json.Unmarshal([]byte(os.Getenv(scriptVariable)), &w) != nil {
		t.Skip("this is a process of another test")
	}
	stores, err := Backend().Open(t.Context(), config(t, &w.Server, w.Prefix, w.Dir, w.Options))
	if err != nil {
		t.Fatal(err)
	}
	for n := range scripted {
		if err := step(t, stores, n); err != nil {
			t.Fatal(err)
		}
		fmt.Println("stored", n)
	}
	if err := stores.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("stored", scripted)
}

// step stores an entry, some with a large value, and a row of a table. It can be
// repeated.
func step(t *testing.T, stores *store.Stores, n int) error {
	t.Helper()
	entry := store.Entry{Key: strconv.Itoa(n), Value: json.RawMessage(valueOf(n))}
	if _, err := stores.LongTerm.Store(t.Context(), entry); err != nil || n%3 != 0 {
		return err
	}
	if _, err := stores.Tables.Create(t.Context(), store.NewTable{Name: "steps", Schema: json.RawMessage(`{"n": "int"}`), PrimaryKey: []string{"n"}}); err != nil {
		return err
	}
	_, err := stores.Tables.Insert(t.Context(), "steps", []store.TableRow{{"n": json.RawMessage(strconv.Itoa(n))}}, store.RowReplace, store.TableCall{Key: fmt.Sprint("step ", n), Hash: "h"})
	return err
}

func valueOf(n int) string { return strconv.Quote(strings.Repeat("x", n%4*700) + strconv.Itoa(n)) }

// run runs the script of a worker, through other commands first, until it ends or
// is killed. It returns the number of steps that were acknowledged.
func (w worker) run(t *testing.T, started func(*os.Process), before ...string) (steps int, ended bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(before, []string{self, "-test.run=^TestKillScript$", "-test.v"})
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), scriptVariable+"="+string(raw))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started(cmd.Process)
	var all strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(out, &all)); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
			n, _ := strconv.Atoi(number)
			steps = n + 1
		}
	}
	err = cmd.Wait()
	state, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && !(state.Signaled() && state.Signal() == syscall.SIGKILL) {
		t.Fatalf("the worker: %v\n%s", err, all.String())
	}
	return steps, err == nil
}

// requestKiller kills a process at a request to the server.
type requestKiller struct {
	target *httputil.ReverseProxy

	mu      sync.Mutex
	process *os.Process
	count   int
	at      int // 0 = never
	after   bool
}

func (e *requestKiller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.count++
	now, process, after := e.count == e.at, e.process, e.after
	e.mu.Unlock()
	if now && !after {
		_ = process.Kill()
		panic(http.ErrAbortHandler)
	}
	if !now {
		e.target.ServeHTTP(w, r)
		return
	}
	e.target.ServeHTTP(httptest.NewRecorder(), r.WithContext(r.Context()))
	_ = process.Kill()
	panic(http.ErrAbortHandler)
}

// next prepares the next process.
func (e *requestKiller) next(at int, after bool) func(*os.Process) {
	e.mu.Lock() // until the process is there
	e.count, e.at, e.after = 0, at, after
	return func(p *os.Process) {
		e.process = p
		e.mu.Unlock()
	}
}

func newRequestKiller(t *testing.T, s *objtest.Server) (*requestKiller, *objtest.Server) {
	t.Helper()
	target, err := url.Parse(s.Settings.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	e := &requestKiller{target: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}, ErrorLog: log.New(io.Discard, "", 0)}} // clients are killed
	proxy := httptest.NewServer(e)
	t.Cleanup(proxy.Close)
	behind := *s
	behind.Settings.Endpoint = proxy.URL
	return e, &behind
}

// settled completes a script whose processes were killed: on the device itself or
// on another one, which takes the lease over. steps were acknowledged.
func settled(t *testing.T, w worker, s *objtest.Server, steps int, elsewhere bool) {
	t.Helper()
	dir := w.Dir
	if elsewhere && w.Options["acknowledge"] != "local" {
		dir = t.TempDir()
	}
	stores, err := Backend().Open(t.Context(), config(t, s, w.Prefix, dir, w.Options))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	}()
	check := func(upTo int) {
		t.Helper()
		for n := range upTo {
			if m, err := stores.LongTerm.Retrieve(t.Context(), "", strconv.Itoa(n)); err != nil || string(m.Value) != valueOf(n) {
				t.Errorf("step %d of %d: %.40s, %v", n, upTo, m.Value, err)
			}
		}
	}
	check(min(steps, scripted))
	for n := range scripted {
		if err := step(t, stores, n); err != nil {
			t.Error(err)
		}
	}
	check(scripted)
	if got := tableRows(t, stores, "SELECT count(*) AS n, sum(n) AS total FROM steps"); got[0] != `{"n":4,"total":18}` {
		t.Errorf("the rows: %s", got)
	}
	checkDatabase(t, stores)
}

func killOptions(acknowledge string) map[string]any {
	return map[string]any{"acknowledge": acknowledge, "lease_seconds": 0.5, "delay_seconds": 0.01, "wait_seconds": 600, "idle_seconds": 60}
}

// A process is killed at each of its requests, before the server gets it or before
// it gets the answer, and again when it continues.
func TestKillAtEachRequest(t *testing.T) {
	t.Parallel()
	every := 1
	if os.Getenv("TEA_KILLS") == "" {
		every = 7
	}
	for _, acknowledge := range []string{"remote", "local"} {
		t.Run(acknowledge, func(t *testing.T) {
			t.Parallel()
			s := objtest.S3(t)
			e, behind := newRequestKiller(t, s)
			kills := 0
			for n := 1; ; n += every {
				w := worker{Server: *behind, Prefix: fmt.Sprint(prefixOf(t), n), Dir: t.TempDir(), Options: killOptions(acknowledge)}
				steps, ended := w.run(t, e.next(n, n/every%2 == 0))
				if ended {
					break
				}
				again, _ := w.run(t, e.next(1+n%7, n%2 == 0))
				kills += 2
				if settled(t, w, s, max(steps, again), n/every%3 == 0); t.Failed() {
					t.Fatalf("killed at request %d", n)
				}
			}
			t.Logf("%d kills", kills)
			if kills < 2 {
				t.Error("the process makes too few requests")
			}
		})
	}
}

// A process is killed at each of its system calls that change the disk.
func TestKillAtEachSystemCall(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("strace is not installed; run scripts/strace install")
		}
		t.Skip("strace is not installed; run scripts/strace install")
	}
	s := objtest.S3(t)
	for _, call := range []string{"/^(fsync|fdatasync)$", "/^rename", "/^(pwrite64|write|ftruncate)$", "/^unlink", "/^(openat|mkdirat)$"} {
		t.Run(strings.Trim(call, "/^$"), func(t *testing.T) {
			t.Parallel()
			kills := 0
			for n := 1; ; {
				w := worker{Server: *s, Prefix: fmt.Sprint(prefixOf(t), n), Dir: t.TempDir(), Options: killOptions([]string{"remote", "local"}[kills%2])}
				trace := []string{strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)}
				steps, ended := w.run(t, func(*os.Process) {}, trace...)
				if ended {
					break
				}
				kills++
				if settled(t, w, s, steps, kills%3 == 0); t.Failed() {
					t.Fatalf("killed at %s number %d", call, n)
				}
				if os.Getenv("TEA_KILLS") != "" {
					n++
				} else {
					n *= 3
				}
			}
			t.Logf("%d kills", kills)
		})
	}
}
