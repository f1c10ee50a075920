package postgres

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// keepWrites is how long the ids of writes are kept: longer than any retry.
	keepWrites = "1 day"
	// cleanEvery is the number of writes after which older ids are removed.
	cleanEvery = 64
	// uniqueViolation is the SQLSTATE of a duplicate row.
	uniqueViolation = "23505"
	// noteSQL records the id of a write without results.
	noteSQL = "INSERT INTO tea_writes (id) VALUES ($1)"
)

// write runs fn in a transaction or as a single statement. fn adds a row with id and its results to tea_writes, so that
// a repeated write takes effect once. It returns the results of the attempt that took effect.
func (d *database) write(ctx context.Context, fn func(ctx context.Context, c conn, id []byte) ([]string, error)) (results []string, err error) {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	err = d.do(ctx, writing, func(ctx context.Context, c conn) error {
		results, err = fn(ctx, c, id)
		if doneBefore(err) {
			rows, _ := c.Query(ctx, "SELECT coalesce(result, '') FROM tea_writes WHERE id = $1 ORDER BY n", id) // CollectRows returns the error
			results, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err == nil && d.writes.Add(1)%cleanEvery == 0 {
			d.clean(ctx, c)
		}
		return err
	})
	return results, err
}

// doneBefore reports whether a write failed because its id exists.
func doneBefore(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == uniqueViolation && refused.TableName == "tea_writes"
}

// statement runs a single statement that adds its results to tea_writes and returns them. Its first parameter is the
// id.
func (d *database) statement(ctx context.Context, sql string, args ...any) ([]string, error) {
	return d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		rows, _ := c.Query(ctx, sql, append([]any{id}, args...)...) // CollectRows returns the error
		return pgx.CollectRows(rows, pgx.RowTo[string])
	})
}

func (d *database) clean(ctx context.Context, c conn) {
	_, err := c.Exec(ctx, "DELETE FROM tea_writes WHERE (id, n) IN (SELECT id, n FROM tea_writes WHERE at < now() - interval '"+keepWrites+"' LIMIT 10000)")
	if err != nil {
		d.logger.Debug("old ids of writes cannot be removed", "error", err.Error())
	}
}
