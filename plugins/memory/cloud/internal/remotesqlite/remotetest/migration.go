package remotetest

import (
	_ "embed" // for the statements
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// version1 creates the first version of the schema.
//
//go:embed testdata/v1.sql
var version1 string

// Migration opens a database of the first version while a device with that version continues to write. exec runs
// statements in the test's database.
func Migration(t *testing.T, open Open, exec func(t *testing.T, statements ...string)) {
	exec(t, slices.DeleteFunc(strings.Split(version1, ";\n"), func(s string) bool { return s == "" })...)
	s := open(t, &servertest.Trips{})
	identity, err := s.Replica.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, feed := range store.Feeds() {
		if diff := cmp.Diff([]string{"kept", "gone"}, keysOf(t, s, feed, 0)); diff != "" {
			t.Errorf("%s of the old database (-want +got):\n%s", feed, diff)
		}
	}
	// These are the statements of the first version for a deletion and a write.
	exec(t,
		"DELETE FROM ltm_text WHERE rowid = 2", "DELETE FROM ltm WHERE id = 2",
		`INSERT INTO ltm (namespace, key, seq, value, content_hash, size, created_at, updated_at)
			SELECT '', 'new', (SELECT n FROM tea_seq WHERE name = 'ltm') + 1, '1', '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b', 1, 1, 1`,
		"UPDATE tea_seq SET n = n + 1 WHERE name = 'ltm'",
		"DELETE FROM documents WHERE kind = 'note' AND id = 'gone'", "UPDATE tea_seq SET n = n + 1 WHERE name = 'documents'",
		"INSERT INTO documents SELECT 'note', 'new', '{}', 1, n FROM tea_seq WHERE name = 'documents'", "UPDATE tea_seq SET n = n + 1 WHERE name = 'documents'",
		"DELETE FROM vectors WHERE collection = 'c' AND name = 'gone'", "UPDATE tea_seq SET n = n + 1 WHERE name = 'vectors'",
		"INSERT INTO vectors (collection, name, seq, text, embedding) SELECT 'c', 'new', n + 1, '', 'AACAPwAAAAA=' FROM tea_seq WHERE name = 'vectors'", "UPDATE tea_seq SET n = n + 1 WHERE name = 'vectors'",
	)
	again := open(t, &servertest.Trips{})
	for _, feed := range store.Feeds() {
		if diff := cmp.Diff([]string{"-gone", "new"}, keysOf(t, again, feed, 2)); diff != "" {
			t.Errorf("%s that the old device changed (-want +got):\n%s", feed, diff)
		}
	}
	if same, err := again.Replica.Identity(t.Context()); err != nil || same != identity {
		t.Errorf("the identity is %q, then %q: %v", identity, same, err)
	}
	if err := again.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other, err := s.Replica.Identity(t.Context()); err != nil || other == identity {
		t.Errorf("the identity after a reset is %q: %v", other, err)
	}
	if left := keysOf(t, s, store.EntryFeed, 0); len(left) != 0 {
		t.Errorf("changes after a reset: %v", left)
	}
}

// Run runs statements in a transaction.
func Run(t *testing.T, server remotesqlite.Server, statements ...string) {
	t.Helper()
	all := make([]remotesqlite.Statement, len(statements))
	for i, sql := range statements {
		all[i].SQL = sql
	}
	if _, err := server.Transaction(t.Context(), "test", all...); err != nil {
		t.Fatal(err)
	}
}

// keysOf returns the keys of the changes after a number, with a minus for tombstones.
func keysOf(t *testing.T, s *store.Stores, feed store.Feed, after int64) []string {
	t.Helper()
	page, err := s.Replica.Changes(t.Context(), store.ChangeQuery{Feed: feed, After: after, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range page.Records {
		key := r.Key
		if r.Deleted {
			key = "-" + key
		}
		keys = append(keys, key)
	}
	return keys
}
