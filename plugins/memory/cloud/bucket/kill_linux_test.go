package bucket

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const workerVariable = "TEA_TEST_BUCKET_WORKER" // a worker as JSON

// worker is a process that stores entries until it is killed.
type worker struct {
	Server  objtest.Server
	Prefix  string
	Dir     string
	Name    string
	Options map[string]any
}

// TestKillWorker is a process of another test. It prints the number of each entry
// that was acknowledged.
func TestKillWorker(t *testing.T) {
	var w worker
	if json.Unmarshal([]byte(os.Getenv(workerVariable)), &w) != nil {
		t.Skip("this is a process of another test")
	}
	stores, err := Backend().Open(t.Context(), config(t, &w.Server, w.Prefix, w.Dir, w.Options))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		entry := store.Entry{Namespace: w.Name, Key: strconv.Itoa(n), Value: json.RawMessage(strconv.Itoa(n)), Metadata: json.RawMessage(`{"text": "` + strings.Repeat("x", n%3000) + `"}`)}
		if _, err := stores.LongTerm.Store(t.Context(), entry); err != nil {
			fmt.Println("failed", err)
			<-time.After(10 * time.Millisecond) // do not flood the output while the server is down
			n--
			continue
		}
		fmt.Println("stored", n)
	}
}

// start starts a worker and returns its process and its output.
func (w worker) start(t *testing.T) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKillWorker$", "-test.v")
	cmd.Env = append(os.Environ(), workerVariable+"="+string(raw))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// storedUntil reads the output until n entries were acknowledged, and returns the
// number of the last one, -1 if the process ended before the first.
func storedUntil(lines *bufio.Scanner, n int) int {
	last := -1
	for seen := 0; seen < n && lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "stored "); ok {
			last, _ = strconv.Atoi(number)
			seen++
		}
	}
	return last
}

// Entries that were acknowledged are there after devices were killed, whether the
// next device to write is the same or another one.
func TestAcknowledgedWritesSurviveKills(t *testing.T) {
	t.Parallel()
	for _, acknowledge := range []string{"remote", "local"} {
		t.Run(acknowledge, func(t *testing.T) {
			t.Parallel()
			s := objtest.S3(t)
			dirs := []string{t.TempDir(), t.TempDir()}
			options := map[string]any{"acknowledge": acknowledge, "lease_seconds": 1, "delay_seconds": 0.05, "wait_seconds": 600}
			r := rand.New(rand.NewPCG(1, uint64(len(acknowledge)))) //nolint:gosec // a test's choices
			acknowledged := map[string]int{}
			for round := range 12 {
				w := worker{Server: *s, Prefix: prefixOf(t), Dir: dirs[r.IntN(2)], Name: fmt.Sprint("round", round), Options: options}
				cmd, lines := w.start(t)
				last := storedUntil(lines, 1+r.IntN(20))
				<-time.After(time.Duration(r.IntN(20)) * time.Millisecond) // in the middle of a write
				_ = cmd.Process.Kill()
				if more := storedUntil(lines, 1<<30); more > last {
					last = more
				}
				_ = cmd.Wait()
				if last < 0 {
					t.Fatalf("round %d has stored nothing", round)
				}
				acknowledged[w.Name] = last
				for range r.IntN(3) { // the device comes back, and does nothing or something else
					stores := openStores(t, config(t, s, prefixOf(t), w.Dir, options))
					if r.IntN(2) == 0 {
						get(t, stores, "any")
					}
					if err := stores.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			// Both devices come back: what one of them had acknowledged locally is there.
			for _, dir := range dirs {
				stores := openStores(t, config(t, s, prefixOf(t), dir, options))
				get(t, stores, "any")
				if err := stores.Close(); err != nil {
					t.Fatal(err)
				}
			}
			stores := openStores(t, config(t, s, prefixOf(t), t.TempDir(), options))
			for name, last := range acknowledged {
				for n := range last + 1 {
					if m, err := stores.LongTerm.Retrieve(t.Context(), name, strconv.Itoa(n)); err != nil || string(m.Value) != strconv.Itoa(n) {
						t.Errorf("%s/%d of %d: %s, %v", name, n, last, m.Value, err)
					}
				}
			}
			checkDatabase(t, stores)
		})
	}
}

// checkDatabase has SQLite check the copy, and that the pages of the bucket are
// the copy's.
func checkDatabase(t *testing.T, stores *store.Stores) {
	t.Helper()
	s := stores.Tables.(tableStore).s
	err := s.read(t.Context(), func(tn *holder) error {
		rows, err := tn.engine.Query(t.Context(), "PRAGMA integrity_check")
		text := ""
		if err = store.Scan(rows, err, func() {}, &text); err == nil && text != "ok" {
			t.Errorf("the database: %s", text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The server is killed and started again under load.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	options := map[string]any{"lease_seconds": 5, "stall_timeout": 2, "attempts": 2, "wait_seconds": 600}
	w := worker{Server: *s, Prefix: prefixOf(t), Dir: t.TempDir(), Name: "load", Options: options}
	cmd, lines := w.start(t)
	last := -1
	for range 4 {
		last = max(last, storedUntil(lines, 10))
		s.Kill()
		s.Restart(t)
	}
	last = max(last, storedUntil(lines, 10))
	_ = cmd.Process.Kill()
	last = max(last, storedUntil(lines, 1<<30))
	_ = cmd.Wait()
	stores := openStores(t, config(t, s, prefixOf(t), t.TempDir(), options))
	for n := range last + 1 {
		if m, err := stores.LongTerm.Retrieve(t.Context(), "load", strconv.Itoa(n)); err != nil || string(m.Value) != strconv.Itoa(n) {
			t.Errorf("%d of %d: %s, %v", n, last, m.Value, err)
		}
	}
	checkDatabase(t, stores)
}

// A copy whose state is damaged can have changes that were acknowledged and not
// published: it is kept.
func TestACopyWithADamagedStateIsKept(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(state []byte) []byte{
		"zeroed": func(state []byte) []byte { return make([]byte, len(state)) },
		"torn":   func(state []byte) []byte { return state[:len(state)/2] },
		"empty":  func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := objtest.S3(t)
			options := map[string]any{"acknowledge": "local", "lease_seconds": 1, "delay_seconds": 3600, "wait_seconds": 600}
			first := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
			set(t, first, "published", "1")
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			w := worker{Server: *s, Prefix: prefixOf(t), Dir: t.TempDir(), Name: "killed", Options: options}
			cmd, lines := w.start(t)
			storedUntil(lines, 5)
			_ = cmd.Process.Kill()
			storedUntil(lines, 1<<30)
			_ = cmd.Wait()
			path := filepath.Join(w.Dir, "0", stateFile)
			state, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, damage(state), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			said := &bytes.Buffer{}
			c := config(t, s, prefixOf(t), w.Dir, options)
			c.Logger = slog.New(slog.NewTextHandler(said, nil))
			stores := openStores(t, c)
			if got := get(t, stores, "published"); got != "1" {
				t.Errorf("the published entry is %q", got)
			}
			if err := stores.Close(); err != nil {
				t.Fatal(err)
			}
			kept, err := engine.Open(t.Context(), engine.Options{Dir: filepath.Join(w.Dir, "0", asidePrefix+withDamage), Driver: sqlite.Driver{}})
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			n, err := store.Int(kept.Query(t.Context(), "SELECT count(*) FROM ltm"))
			if err != nil || n < 5 {
				t.Errorf("the kept copy has %d entries, %v; want those that were acknowledged", n, err)
			}
			if !strings.Contains(said.String(), asidePrefix+withDamage) {
				t.Errorf("the log does not name the kept copy: %s", said)
			}
		})
	}
}
