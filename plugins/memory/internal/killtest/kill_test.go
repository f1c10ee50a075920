package killtest

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

const workers = 6

func TestNothingIsLostWhenThePluginIsKilled(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it kills processes again and again")
	for engine, kills := range map[string]int{"sqlite": 120, "duckdb": 60} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "duckdb" && !duckdb.Available {
				t.Skip("this build has no DuckDB")
			}
			if peertest.RaceDetector {
				kills /= 3
			}
			if n, err := strconv.Atoi(os.Getenv("TEA_KILLS")); err == nil {
				kills = n
			}
			run(t, engine, kills)
		})
	}
}

// victim is a memory that is killed again and again.
type victim struct {
	engine   string
	dir      string
	settings tea.Settings
	areas    []area
	acks     atomic.Int64
	random   *rand.Rand
}

func run(t *testing.T, engine string, kills int) {
	t.Helper()
	seed := rand.Uint64()                                                                                  //nolint:gosec // it is printed where it matters
	v := &victim{engine: engine, dir: t.TempDir(), areas: areas(), random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // as above
	memory, err := json.Marshal(map[string]any{"path": v.dir, "engine": engine, "archives": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	v.settings = tea.Settings{"memory": memory}
	for round := range kills {
		if v.round(t, round); t.Failed() {
			t.Fatalf("seed %d, kill %d", seed, round)
		}
	}
	v.openWithoutUse(t)
	p := startPlugin(t, v.settings, &v.acks)
	v.look(t, p)
	v.orphans(t, p)
	p.process.Close()
	t.Logf("%d kills, %d acknowledged changes", kills, v.acks.Load())
}

// round looks at what the kill before has left, writes, and kills again.
func (v *victim) round(t *testing.T, round int) {
	t.Helper()
	v.openWithoutUse(t)
	p := startPlugin(t, v.settings, &v.acks)
	defer p.process.Close()
	defer p.kill()
	if v.look(t, p); t.Failed() {
		return
	}
	if round%25 == 24 {
		if v.orphans(t, p); t.Failed() {
			return
		}
	}
	v.writeAndKill(t, p, round)
	if round%10 == 9 {
		v.damage(t)
	}
}

// openWithoutUse opens and closes the memory up to two times without a use of its
// records, or reads them for a backup.
func (v *victim) openWithoutUse(t *testing.T) {
	t.Helper()
	for range v.random.IntN(3) {
		if v.engine == "duckdb" && v.random.IntN(3) == 0 {
			v.openAsEarlierVersions(t)
			continue
		}
		p := startPlugin(t, v.settings, &v.acks)
		if v.random.IntN(3) == 0 { // killed again, while it recovers
			kill := time.AfterFunc(time.Duration(v.random.Int64N(int64(80*time.Millisecond))), p.kill)
			if err := p.call(t.Context(), "memory.inspect", map[string]any{}, nil); err != nil && !errors.Is(err, errKilled) {
				t.Errorf("%v\n%s", err, p.output)
			}
			p.kill()
			kill.Stop()
			p.process.Close()
			continue
		}
		action, params := "memory.inspect", map[string]any{}
		switch v.random.IntN(4) {
		case 0:
			action, params = "memory.export", map[string]any{"path": crand.Text() + ".teamem"}
		case 1:
			action, params = "catalog.register_table", map[string]any{"name": "unrelated", "format": "csv"}
		}
		err := p.call(t.Context(), action, params, nil)
		if err = errors.Join(err, p.instance.Close()); err != nil {
			t.Errorf("%v\n%s", err, p.output)
		}
		p.process.Close()
	}
}

// openAsEarlierVersions opens and closes the database as versions of tea did that
// damaged its indexes by that.
func (v *victim) openAsEarlierVersions(t *testing.T) {
	t.Helper()
	path := filepath.Join(v.dir, "memory.duckdb")
	if _, err := os.Stat(path); err != nil {
		return // it was killed before it was created
	}
	db, err := sql.Open("duckdb", path)
	if err == nil {
		err = errors.Join(db.PingContext(t.Context()), db.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// look compares everything with what was acknowledged.
func (v *victim) look(t *testing.T, p *plugin) {
	t.Helper()
	for _, a := range v.areas {
		if err := a.check(t.Context(), p); err != nil {
			t.Errorf("%v\n%s", err, p.output)
		}
	}
}

// writeAndKill lets everybody write and kills at a random instant: while they
// write, after a while, or while the plugin is told to end.
func (v *victim) writeAndKill(t *testing.T, p *plugin, round int) {
	t.Helper()
	enough := v.acks.Load() + v.random.Int64N(60)
	reached := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for worker := range workers {
		r := rand.New(rand.NewPCG(v.random.Uint64(), 1)) //nolint:gosec // a test's data
		group.Go(func() {
			for {
				if v.acks.Load() >= enough {
					once.Do(func() { close(reached) })
				}
				err := v.areas[r.IntN(len(v.areas))].write(t.Context(), p, worker, r)
				if err == nil {
					continue
				}
				if !errors.Is(err, errKilled) && !p.killed.Load() {
					t.Errorf("%v\n%s", err, p.output)
				}
				once.Do(func() { close(reached) })
				return
			}
		})
	}
	<-reached
	kill := time.AfterFunc(time.Duration(v.random.Int64N(int64(5*time.Millisecond))), p.kill)
	if round%5 == 4 {
		kill.Reset(time.Duration(v.random.Int64N(int64(30 * time.Millisecond))))
		p.killed.Store(true)   // calls fail from now on
		_ = p.instance.Close() // it may end, or not
	}
	group.Wait()
	p.kill()
	kill.Stop()
}

// damage breaks a companion: a byte is another one, or the end is missing.
func (v *victim) damage(t *testing.T) {
	t.Helper()
	var files []string
	for _, dir := range []string{"index", "vectors"} {
		err := filepath.WalkDir(filepath.Join(v.dir, dir), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		return
	}
	path := files[v.random.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return
	}
	if v.random.IntN(2) == 0 {
		data = data[:v.random.IntN(len(data))]
	} else {
		data[v.random.IntN(len(data))] ^= 1 << v.random.IntN(8)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sweepTimeout is how long the sweep of a start may take on a busy machine.
const sweepTimeout = time.Minute

// orphans waits until only those blobs are there that something names.
func (v *victim) orphans(t *testing.T, p *plugin) {
	t.Helper()
	var want []string
	for _, a := range v.areas {
		names, err := a.blobs(t.Context(), p)
		if err != nil {
			t.Error(err)
			return
		}
		want = append(want, names...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	files, err := tableFiles(t.Context(), p)
	if err != nil {
		t.Error(err)
		return
	}
	if diff := cmp.Diff(files, filesBelow(t, filepath.Join(v.dir, "tables"))); diff != "" {
		t.Errorf("files of the catalog (-) and those that are there (+):\n%s", diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sweepTimeout)
	defer cancel()
	for {
		got := filesBelow(t, filepath.Join(v.dir, "blobs"))
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("blobs that are named (-) and those that are there (+):\n%s", diff)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// filesBelow are the files in a folder, unfinished ones included.
func filesBelow(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, root)), "/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func areas() []area {
	return []area{&ltmArea{}, &vectorArea{}, &fileArea{}, &sessionArea{}, &tableArea{}, &catalogArea{}}
}
