package engine_test

import (
	"context"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TestAStatementSeesWhatItsFirstRunDidNot repeats statements without
// parameters after the tables have got values that were not there before.
func TestAStatementSeesWhatItsFirstRunDidNot(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers(t) {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			e := open(t, driver, t.TempDir())
			write := func(statements ...string) {
				t.Helper()
				err := e.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
					for _, s := range statements {
						if _, err := tx.Exec(ctx, s); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			number := func(query string) (n int) {
				t.Helper()
				rows, err := e.Query(t.Context(), query)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				for rows.Next() {
					if err := rows.Scan(&n); err != nil {
						t.Fatal(err)
					}
				}
				return n
			}
			const removal = "DELETE FROM stale WHERE b = 9"
			write("CREATE TABLE stale (a VARCHAR, b BIGINT)", "INSERT INTO stale VALUES ('I', 1), ('U', 2)", removal)
			queries := map[string]int{ // what they give in the end
				"SELECT count(*) FROM stale WHERE a <> 'D'":                                          3,
				"SELECT count(*) FROM stale WHERE b IS NULL":                                         1,
				"SELECT count(*) FROM stale WHERE b IS NOT NULL":                                     3,
				"SELECT count(*) FROM stale WHERE b = 7":                                             1,
				"SELECT sum(length(k)) FROM (SELECT a AS k, max(b) FROM stale GROUP BY a) AS longer": 36,
			}
			for query := range queries {
				number(query)
			}
			write("INSERT INTO stale VALUES ('D', NULL), ('DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD', 7), ('D', 9)")
			write(removal)
			for query, want := range queries {
				if got := number(query); got != want {
					t.Errorf("%s: %d, want %d", query, got, want)
				}
			}
		})
	}
}
