package postgres

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// openAs opens a memory with row_security as a user; "" is the owner.
func openAs(t *testing.T, user string) *store.Stores {
	t.Helper()
	config := configOf(t, time.Now)
	if user != "" {
		config.URL += "&user=" + user
	}
	config.Options = []byte(`{"row_security": true, "schema": "` + server.Schema(t) + `"}`)
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	})
	return stores
}

// TestRolesSeeTheirNamespaces has the owner of a memory, two roles with a
// namespace each, and the statements of the memory's page.
func TestRolesSeeTheirNamespaces(t *testing.T) {
	t.Parallel()
	url, schema := server.URL(t), server.Schema(t)
	owner := openAs(t, "")
	entry := func(namespace, key string) store.Entry {
		return store.Entry{Namespace: namespace, Key: key, Value: json.RawMessage(`"harbor lights"`)}
	}
	if _, err := owner.LongTerm.Store(t.Context(), entry("", "common"), entry("a", "first"), entry("b", "first")); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"a", "b"} {
		user := role + "_" + schema
		administer(t, url, "SET search_path = "+schema,
			"CREATE ROLE "+user+" LOGIN",
			"GRANT USAGE ON SCHEMA "+schema+" TO "+user,
			"GRANT SELECT ON tea_schema, tea_access TO "+user,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ltm, tea_writes TO "+user,
			"INSERT INTO tea_access VALUES ('"+user+"', '"+role+"')")
	}
	a, b := openAs(t, "a_"+schema), openAs(t, "b_"+schema)
	denied := func(what string, err error) {
		t.Helper()
		if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied {
			t.Errorf("%s: %v, want a permission_denied", what, err)
		}
	}
	if _, err := a.LongTerm.Store(t.Context(), entry("a", "second")); err != nil {
		t.Error(err)
	}
	_, err := a.LongTerm.Store(t.Context(), entry("b", "second"))
	denied("store an entry", err)
	_, err = a.LongTerm.Store(t.Context(), entry("b", "first"))
	denied("replace an entry", err)
	denied("a session", a.Metadata.Apply(t.Context(), store.Change{Kind: "session", ID: "s", Body: json.RawMessage(`{}`)}))
	_, err = a.Vectors.Collections(t.Context())
	denied("vectors", err)
	denied("reset", a.Reset(t.Context()))
	for _, namespace := range []string{"", "b"} {
		if _, err := a.LongTerm.Retrieve(t.Context(), namespace, "first"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("retrieve from %q: %v", namespace, err)
		}
		if n, err := a.LongTerm.DeletePrefix(t.Context(), namespace, ""); n != 0 || err != nil {
			t.Errorf("delete from %q: %d, %v", namespace, n, err)
		}
	}
	keys := func(s *store.Stores, namespace string) (keys []string) {
		t.Helper()
		found, err := s.LongTerm.Search(t.Context(), store.Search{Namespace: namespace, Text: "harbor", Limit: 10})
		if err != nil {
			t.Error(err)
		}
		for _, f := range found.Found {
			keys = append(keys, f.Key)
		}
		return keys
	}
	got := [][]string{keys(a, "a"), keys(a, "b"), keys(b, "a"), keys(b, "b"), keys(owner, "a"), keys(owner, "b"), keys(owner, "")}
	want := [][]string{{"first", "second"}, nil, nil, {"first"}, {"first", "second"}, {"first"}, {"common"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := b.LongTerm.Sweep(t.Context(), time.Now()); err != nil {
		t.Errorf("sweep: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url+"&user=a_"+schema+"&search_path="+schema)
	if err != nil {
		t.Fatal(err)
	}
	var n, access int
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM ltm), (SELECT count(*) FROM tea_access)").Scan(&n, &access); err != nil || n != 2 || access != 1 {
		t.Errorf("SQL sees %d entries and %d namespaces, %v", n, access, err)
	}
	for _, namespace := range []string{"a", "b"} { // tombstones have the names of entries
		if _, err := owner.LongTerm.Delete(t.Context(), namespace, "first"); err != nil {
			t.Fatal(err)
		}
	}
	if err := owner.Metadata.Apply(t.Context(), store.Change{Kind: "k", ID: "d", Body: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := owner.Metadata.Apply(t.Context(), store.Change{Kind: "k", ID: "d"}); err != nil {
		t.Fatal(err)
	}
	administer(t, url, "GRANT SELECT, DELETE ON "+schema+".tea_deleted TO a_"+schema)
	var spaces []string
	if err := conn.QueryRow(t.Context(), "SELECT array_agg(DISTINCT convert_from(space, 'UTF8')) FROM tea_deleted").Scan(&spaces); err != nil || cmp.Diff([]string{"a"}, spaces) != "" {
		t.Errorf("SQL sees deletions in %q, %v", spaces, err)
	}
	for _, sql := range []string{"SET row_security = off; SELECT count(*) FROM ltm", "INSERT INTO tea_access VALUES (current_user, 'b')", "ALTER TABLE ltm DISABLE ROW LEVEL SECURITY", "UPDATE ltm SET namespace = 'b'"} {
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("%s: no error", sql)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRowSecurityIsRequiredOfOtherUsers opens a memory without policies.
func TestRowSecurityIsRequiredOfOtherUsers(t *testing.T) {
	t.Parallel()
	url, schema := server.URL(t), server.Schema(t)
	stores, err := openStores(t, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("1")}); err != nil {
		t.Fatal(err)
	}
	if err := (&backend[any]{nil, stores}).Close(); err != nil {
		t.Fatal(err)
	}
	administer(t, url, "CREATE ROLE user_"+schema+" LOGIN", "GRANT ALL ON SCHEMA "+schema+" TO user_"+schema, "GRANT ALL ON ALL TABLES IN SCHEMA "+schema+" TO user_"+schema)
	_, err = openAs(t, "user_"+schema).LongTerm.Retrieve(t.Context(), "", "a")
	if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied {
		t.Errorf("%v, want a permission_denied", err)
	}
	if _, err := openAs(t, "").LongTerm.Retrieve(t.Context(), "", "a"); err != nil {
		t.Error(err)
	}
	administer(t, url, "GRANT SELECT ON "+schema+".tea_access TO user_"+schema)
	if _, err := openAs(t, "user_"+schema).LongTerm.Retrieve(t.Context(), "", "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v, want no entry", err)
	}
}
