//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// crashed returns the file of a database and its log after each of some commits,
// as a process that is killed leaves them.
func crashed(t *testing.T, commits int) (database []byte, logs [][]byte) {
	t.Helper()
	db := opened(t, t.TempDir())
	apply(t, db, store.Batch{Entities: []store.Entity{entity("first", "thing", `{}`)}})
	if err := db.checkpoint(); err != nil {
		t.Fatal(err)
	}
	for n := range commits {
		apply(t, db, store.Batch{Entities: []store.Entity{entity(fmt.Sprintf("e%d", n), "thing", `{}`)}})
		log, err := os.ReadFile(db.path + walSuffix)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, log)
	}
	database, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	return database, logs
}

// openCrashed opens a database with a log and returns its number of entities.
func openCrashed(t *testing.T, database, log []byte) (path string, entities int, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), databaseFile)
	for name, content := range map[string][]byte{path: database, path + walSuffix: log} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(t.Context(), store.Options{Dir: filepath.Dir(path)})
	if err != nil {
		return path, 0, err
	}
	stats, err := db.Stats(t.Context(), "default")
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, int(stats.Entities), nil
}

// Acknowledged commits are not dropped because a byte of the log has changed, and
// a damaged log does not reach the engine, which it would end.
func TestADamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	database, logs := crashed(t, 20)
	log := logs[len(logs)-1]
	if _, n, err := openCrashed(t, database, log); n != 21 || err != nil {
		t.Fatalf("the undamaged log: %d entities, %v", n, err)
	}
	const marks = 40 // bytes of the header, whose two marks are each enough
	cases := map[string][]byte{
		"empty":       {},
		"text":        []byte("text"),
		"zeros":       make([]byte, len(log)),
		"header only": log[:marks],
		"swapped":     slices.Concat(log[:marks], log[len(log)/2:], log[marks:len(log)/2]),
	}
	for at := 0; at < len(log); at += 1 + len(log)/60 {
		if at < 8 || at >= marks {
			changed := bytes.Clone(log)
			changed[at] ^= 4
			cases[fmt.Sprintf("byte %d of %d", at, len(log))] = changed
			cleared := bytes.Clone(log)
			clear(cleared[at:min(at+3000, len(log))])
			cases[fmt.Sprintf("3000 zeros at %d", at)] = cleared
		}
		cases[fmt.Sprintf("%d of %d bytes", at, len(log))] = log[:at]
	}
	for name, damaged := range cases {
		path, n, err := openCrashed(t, database, damaged)
		if e := tea.AsError(err); err == nil || e.Type != tea.InternalError || !strings.Contains(e.Message, path+walSuffix+" of the graph is damaged") || !strings.Contains(e.Message, "restore a backup") {
			t.Errorf("%s: %d entities, %v", name, n, err)
		}
		if left, err := os.ReadFile(path + walSuffix); err != nil || !bytes.Equal(left, damaged) {
			t.Errorf("%s: the log was changed: %v", name, err)
		}
	}
}

// One mark of the two is enough, and the older one too: a power failure can lose
// the newer one.
func TestALogWithOneMarkIsRead(t *testing.T) {
	t.Parallel()
	database, logs := crashed(t, 3)
	for _, at := range []int{8, 24} {
		log := bytes.Clone(logs[2])
		clear(log[at : at+16])
		if _, n, err := openCrashed(t, database, log); n != 4 || err != nil {
			t.Errorf("without the mark at byte %d: %d entities, %v", at, n, err)
		}
	}
}

// A commit that a crash has interrupted is cut off, wherever that was.
func TestATornCommitIsCutOff(t *testing.T) {
	t.Parallel()
	database, logs := crashed(t, 3)
	before, after := logs[1], logs[2]
	step := 1 + (len(after)-len(before))/40
	for end := len(before); end <= len(after); end += step {
		for name, tail := range map[string][]byte{"cut": nil, "zeros": make([]byte, len(after)-end)} {
			torn := slices.Concat(before, after[len(before):end], tail)
			want := 3
			if end == len(after) {
				want = 4
			}
			path, n, err := openCrashed(t, database, torn)
			if n != want || err != nil {
				t.Errorf("%s after %d of %d bytes: %d entities, want %d; %v", name, end, len(after), n, want, err)
			}
			if _, err := os.Stat(path + walSuffix); !os.IsNotExist(err) {
				t.Errorf("the log remains after Close: %v", err)
			}
		}
	}
}

// What is stored after a torn commit is found after the next crash.
func TestALogIsContinuedAfterATornCommit(t *testing.T) {
	t.Parallel()
	database, logs := crashed(t, 3)
	path := filepath.Join(t.TempDir(), databaseFile)
	for name, content := range map[string][]byte{path: database, path + walSuffix: slices.Concat(logs[1], logs[2][len(logs[1]):len(logs[2])-7])} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.Context(), store.Options{Dir: filepath.Dir(path)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	apply(t, s.(*DB), store.Batch{Entities: []store.Entity{entity("next", "thing", `{}`)}})
	log, err := os.ReadFile(path + walSuffix)
	if err != nil {
		t.Fatal(err)
	}
	if _, n, err := openCrashed(t, database, log); n != 4 || err != nil {
		t.Errorf("%d entities, %v", n, err)
	}
}
