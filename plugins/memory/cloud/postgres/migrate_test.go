package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Another process changes the definitions of the tables, and one call waits for it. A
// second one ends with its context, not with the first.
func TestACallDoesNotWaitForAMigrationBeyondItsContext(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	d, err := open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	stores := d.stores(config)
	t.Cleanup(func() { _ = (&backend[any]{nil, stores}).Close() })
	conn, err := pgx.ConnectConfig(t.Context(), d.pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = d.withSchemaLock(t.Context(), conn, func(pgx.Tx) error {
		// The lock is that of the first call, as while it waits for the other process.
		if err := d.migrating.lock(t.Context()); err != nil {
			return err
		}
		defer d.migrating.unlock()
		for name, call := range map[string]func(ctx context.Context) error{
			"an entry": func(ctx context.Context) error { _, err := stores.LongTerm.Retrieve(ctx, "", "k"); return err },
			"a vector": func(ctx context.Context) error { _, err := stores.Vectors.Collections(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			began := time.Now()
			err := call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > config.Timeout/2 {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
