package schema_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestKeysFromBeforeNamespacesStayReachable goes back to the first version of
// the schema, where a key could begin with the last code point of Unicode.
func TestKeysFromBeforeNamespacesStayReachable(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		const last = "\U0010FFFF"
		options := engine.Options{Dir: t.TempDir(), Driver: driver}
		old := []string{
			"DELETE FROM tea_schema WHERE version > 1",
			"DROP INDEX IF EXISTS vectors_by_name",
			"INSERT INTO ltm VALUES (1, 'plain', 1, '1', NULL, '', 0, 0, NULL), (2, '" + last + "old', 2, '2', NULL, '', 0, 0, NULL), " +
				"(3, '" + last + "space\x01key', 3, '3', NULL, '', 0, 0, NULL)",
		}
		var keys []string
		for _, statements := range [][]string{old, nil} {
			e, err := engine.Open(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			err = e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				for _, statement := range statements {
					if _, err := tx.Exec(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := e.Query(t.Context(), "SELECT key FROM ltm ORDER BY id")
			if err != nil {
				t.Fatal(err)
			}
			keys = nil
			for rows.Next() {
				var key string
				if err := rows.Scan(&key); err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"plain", last + "\x01" + last + "old", last + "space\x01key"}, keys); diff != "" {
			t.Errorf("keys after the migration (-want +got):\n%s", diff)
		}
	})
}
