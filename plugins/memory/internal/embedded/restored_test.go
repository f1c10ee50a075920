package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// cutCalls is a store whose connection breaks at a call, before or after it was done.
type cutCalls struct {
	store.Replica
	left  int
	after bool
	kill  bool // the process is killed instead
}

func (c *cutCalls) cut(later bool) error {
	if c.left--; c.left != 0 {
		return nil
	}
	if c.kill && !later {
		killed()
	}
	return errCut
}

// killed ends this process at once.
func killed() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

func (c *cutCalls) Changes(ctx context.Context, q store.ChangeQuery) (store.ChangePage, error) {
	if err := c.cut(false); err != nil {
		return store.ChangePage{}, err
	}
	return c.Replica.Changes(ctx, q)
}

func (c *cutCalls) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	if err := c.cut(false); err != nil {
		return nil, err
	}
	return c.Replica.Records(ctx, names...)
}

func (c *cutCalls) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	err := c.cut(c.after)
	if err != nil && !c.after {
		return nil, err
	}
	results, failed := c.Replica.Put(ctx, writes...)
	if err != nil && c.kill {
		killed()
	}
	return results, errors.Join(err, failed)
}

// world has a shared memory and devices, each in a folder, and older copies of them.
type world struct {
	t      *testing.T
	random *rand.Rand
	dirs   []string // the first one is shared
	copies [][]string
	latest map[string]int // the last version of each key that a memory has
}

func (w *world) open(n int, do func(m *memory)) {
	w.t.Helper()
	m, err := openMemory(w.t, sqlite.Driver{}, w.dirs[n])
	if err != nil {
		w.t.Fatal(err)
	}
	do(m)
	if err := m.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) copy(from, to string) {
	w.t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		w.t.Fatal(err)
	}
}

// find sets the latest versions to those that some memory has.
func (w *world) find() {
	w.latest = map[string]int{}
	for n := range w.dirs {
		w.open(n, func(m *memory) {
			for name, body := range contents(w.t, m) {
				w.latest[name] = max(w.latest[name], versionIn(body))
			}
		})
	}
}

// versionIn returns the version in a body that ends with it.
func versionIn(body string) int {
	n, _ := strconv.Atoi(strings.Trim(body[strings.LastIndex(body, ":")+1:], "}"))
	return n // 0 for none
}

func (w *world) write(device, version int) {
	w.open(device, func(m *memory) {
		for range 1 + w.random.IntN(4) {
			key := fmt.Sprintf("%d/%d", device, w.random.IntN(4))
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			record := entry(key, version)
			if w.random.IntN(2) == 0 {
				record = storetest.DocumentRecord("note", key, fmt.Sprintf(`{"updated_at":%q,"version":%d}`, now, version))
			}
			put(w.t, m, record)
			w.latest[fmt.Sprint(record.Feed, " ", record.Space, " ", key)] = version
			// Records that come and go; nothing is said about which version stays.
			passing := entry("passing/"+key, version)
			if w.random.IntN(2) == 0 {
				passing = storetest.Tombstone(passing)
			}
			put(w.t, m, passing, storetest.VectorRecord("passing", key, fmt.Sprint(version), 1, float32(version)))
		}
	})
}

func (w *world) sync(device int, cut bool) {
	w.open(0, func(shared *memory) {
		w.open(device, func(m *memory) {
			remote := &cutCalls{Replica: shared, after: w.random.IntN(2) == 0}
			if cut {
				remote.left = 1 + w.random.IntN(16)
			}
			_, err := syncing.Run(w.t.Context(), options(m, remote, syncing.LastWrite))
			if err != nil && !errors.Is(err, errCut) {
				w.t.Fatal(err)
			}
			if err == nil {
				if diff := cmp.Diff(contents(w.t, shared), contents(w.t, m)); diff != "" {
					w.t.Fatalf("the shared memory (-) and device %d (+):\n%s", device, diff)
				}
			}
		})
	})
}

// killedChild is the variable of a process that synchronises and is killed.
const killedChild = "TEA_TEST_KILLED_SYNC"

// syncKilled synchronises in a process that is killed at a call, unless it makes
// fewer calls.
func (w *world) syncKilled(device int) {
	w.t.Helper()
	child := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^TestSyncOfAKilledProcess$")
	arguments := []string{w.dirs[0], w.dirs[device], strconv.Itoa(1 + w.random.IntN(16)), strconv.FormatBool(w.random.IntN(2) == 0)}
	child.Env = append(os.Environ(), killedChild+"="+strings.Join(arguments, "\n"))
	out, err := child.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.Exited()) {
		w.t.Fatalf("%v\n%s", err, out)
	}
}

// TestSyncOfAKilledProcess is the process of syncKilled.
func TestSyncOfAKilledProcess(t *testing.T) {
	given, ok := os.LookupEnv(killedChild)
	if !ok {
		t.Skip("it is run by TestSyncWithOlderCopiesLostRecords")
	}
	arguments := strings.Split(given, "\n")
	left, err := strconv.Atoi(arguments[2])
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dirs: arguments[:2]}
	w.open(0, func(shared *memory) {
		w.open(1, func(m *memory) {
			remote := &cutCalls{Replica: shared, left: left, after: arguments[3] == "true", kill: true}
			if _, err := syncing.Run(t.Context(), options(m, remote, syncing.LastWrite)); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// step does something to the shared memory or a device.
func (w *world) step(version int) {
	n := w.random.IntN(len(w.dirs))
	switch choice := w.random.IntN(20); {
	case choice < 1:
		to := w.t.TempDir()
		w.copy(w.dirs[n], to)
		w.copies[n] = append(w.copies[n], to)
	case choice < 2 && len(w.copies[n]) > 0:
		w.copy(w.copies[n][w.random.IntN(len(w.copies[n]))], w.dirs[n])
		w.find()
	case n > 0 && choice < 11:
		w.write(n, version)
	case n > 0 && choice < 13:
		w.syncKilled(n)
	case n > 0:
		w.sync(n, w.random.IntN(2) == 0)
	}
}

// TestSyncWithOlderCopiesLostRecords puts older copies of the shared memory and of the
// devices back, between changes, interrupted synchronisations and kills of the process. What some memory has
// stays, and in the end all have the same.
func TestSyncWithOlderCopiesLostRecords(t *testing.T) {
	t.Parallel()
	histories, steps := 3, 120
	if peertest.RaceDetector {
		histories, steps = 1, 40
	}
	for range histories {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, random: rand.New(rand.NewPCG(seed, 0)), latest: map[string]int{}} //nolint:gosec // a test's data
			for range 4 {
				w.dirs, w.copies = append(w.dirs, t.TempDir()), append(w.copies, nil)
			}
			for version := range steps {
				w.step(version + 1)
			}
			for range 3 {
				for n := 1; n < len(w.dirs); n++ {
					w.sync(n, false)
				}
			}
			var shared map[string]string
			w.open(0, func(m *memory) { shared = contents(t, m) })
			for name, version := range w.latest {
				if got := versionIn(shared[name]); got != version && !strings.Contains(name, "passing") {
					t.Errorf("%s has version %d, want %d", name, got, version)
				}
			}
		})
	}
}

// forget removes what a device has noted about marks, so that it looks like one that an
// earlier version has synchronised.
func (m *memory) forget(t *testing.T) {
	t.Helper()
	err := m.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
		n, err := tx.Exec(ctx, "DELETE FROM tea_sync_base WHERE id LIKE '%\"history\"]'")
		if err == nil && n != 1 {
			err = fmt.Errorf("%d rows", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFirstSyncAfterAnUpdate synchronises a device with the notes of an earlier version:
// all changes of both sides since its last synchronisation are known as such.
func TestFirstSyncAfterAnUpdate(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		local, remote := mustOpen(t, driver), mustOpen(t, sqlite.Driver{})
		each := func(key, version string) []store.Record {
			return []store.Record{storetest.EntryRecord("", key, version), storetest.VectorRecord("v", key, version, 1, 2), storetest.DocumentRecord("note", key, `{"a":`+version+`}`)}
		}
		for _, key := range []string{"here", "there", "gone here", "gone there", "same"} {
			put(t, local, each(key, "1")...)
		}
		mustSync(t, local, remote, syncing.Remote)
		local.forget(t)
		put(t, local, each("here", "2")...)
		put(t, local, each("new here", "1")...)
		put(t, remote, each("there", "2")...)
		put(t, remote, each("new there", "1")...)
		for _, gone := range each("gone here", "0") {
			put(t, local, storetest.Tombstone(gone))
		}
		for _, gone := range each("gone there", "0") {
			put(t, remote, storetest.Tombstone(gone))
		}
		r := mustSync(t, local, remote, syncing.Remote)
		if want := (syncing.Result{Pulled: 6, Pushed: 6, DeletedLocally: 3, DeletedThere: 3, Full: true, Bytes: r.Bytes}); !cmp.Equal(r, want) {
			t.Errorf("(-want +got):\n%s", cmp.Diff(want, r))
		}
		want := map[string]string{}
		for key, version := range map[string]string{"here": "2", "there": "2", "new here": "1", "new there": "1", "same": "1"} {
			for _, record := range each(key, version) {
				want[fmt.Sprint(record.Feed, " ", record.Space, " ", key)] = string(record.Body)
			}
		}
		for name, m := range map[string]*memory{"device": local, "remote": remote} {
			if diff := cmp.Diff(want, contents(t, m)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if r := mustSync(t, local, remote, syncing.Remote); r.Full || r.Bytes != 0 {
			t.Errorf("the second time: %+v", r)
		}
	})
}
