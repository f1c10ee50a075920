package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// contents stores the contents of files in tables. The id of a content is its part_id.
type contents struct{ d *database }

var _ blob.Database = contents{}

func (d *database) Contents() store.BlobStorage {
	return &blob.Parts{Database: contents{d}, Size: 1 << 20, AtOnce: 1, Now: d.now}
}

// keepGone is the time for which the parts of replaced and removed blobs are
// kept for those who read them.
const keepGone = "1 hour"

// AddParts adds parts. Those that do not become a blob are removed later.
func (b contents) AddParts(ctx context.Context, id string, from int, parts [][]byte) (string, error) {
	var n int64
	err := b.d.do(ctx, writing, func(ctx context.Context, c conn) error {
		if id != "" {
			return nil
		}
		return c.QueryRow(ctx, "INSERT INTO blobs_gone (part_id, at) VALUES (nextval('blob_ids'), now() + interval '1 day') RETURNING part_id").Scan(&n)
	})
	if id == "" {
		id = strconv.FormatInt(n, 10)
	}
	for i, part := range parts {
		if err == nil {
			err = b.d.do(ctx, writing, func(ctx context.Context, c conn) error {
				_, err := c.Exec(ctx, "INSERT INTO blob_parts VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", id, from+i, part)
				return err
			})
		}
	}
	return id, err
}

func (b contents) Publish(ctx context.Context, info store.BlobInfo, content blob.Content, from int) error {
	modified := info.Modified.UnixMicro()
	_, err := b.d.write(ctx, func(ctx context.Context, c conn, write []byte) ([]string, error) {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		batch.Queue(noteSQL, write)
		// Replacing a blob locks its row, so that each is in blobs_gone once.
		batch.Queue("INSERT INTO blobs VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING", info.Name)
		batch.Queue("INSERT INTO blobs_gone (part_id) SELECT part_id FROM (SELECT part_id FROM blobs WHERE name = $1 FOR UPDATE) AS old WHERE part_id > 0", info.Name)
		if content.ID == "" {
			batch.Queue("UPDATE blobs SET part_id = nextval('blob_ids'), size = $2, modified = $3 WHERE name = $1", info.Name, info.Size, modified)
		} else {
			batch.Queue("UPDATE blobs SET part_id = $4, size = $2, modified = $3 WHERE name = $1", info.Name, info.Size, modified, content.ID)
			batch.Queue("DELETE FROM blobs_gone WHERE part_id = $1", content.ID).Exec(func(tag pgconn.CommandTag) error {
				if tag.RowsAffected() == 0 { // its parts are removed with it
					return blob.Expired(info.Name)
				}
				return nil
			})
		}
		for i, part := range content.Parts {
			batch.Queue("INSERT INTO blob_parts SELECT part_id, $2, $3 FROM blobs WHERE name = $1", info.Name, from+i, part)
		}
		// Removes a few of the parts that nobody reads any longer.
		batch.Queue(`WITH old AS (DELETE FROM blobs_gone WHERE part_id IN (SELECT part_id FROM blobs_gone WHERE at < now() - interval '` + keepGone + `' LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING part_id)
			DELETE FROM blob_parts WHERE part_id IN (SELECT part_id FROM old)`)
		batch.Queue("COMMIT")
		return nil, b.d.transaction(ctx, c, batch)
	})
	return err
}

func (b contents) Open(ctx context.Context, name string) (content blob.Content, err error) {
	err = b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		content.Parts = make([][]byte, 1)
		err := c.QueryRow(ctx, "SELECT part_id::text, size, coalesce(data, '') FROM blobs LEFT JOIN blob_parts USING (part_id) WHERE name = $1 AND coalesce(n, 0) = 0", name).Scan(&content.ID, &content.Size, &content.Parts[0])
		if errors.Is(err, pgx.ErrNoRows) {
			return blob.Missing(name)
		}
		return err
	})
	return content, err
}

func (b contents) ReadParts(ctx context.Context, id string, from int) (parts [][]byte, err error) {
	err = b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		rows, _ := c.Query(ctx, "SELECT data FROM blob_parts WHERE part_id = $1 AND n = $2", id, from) // CollectRows returns the error
		parts, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	})
	return parts, err
}

func (b contents) Delete(ctx context.Context, name string) error {
	_, err := b.d.statement(ctx, `WITH old AS (DELETE FROM blobs WHERE name = $2 RETURNING part_id), gone AS (INSERT INTO blobs_gone (part_id) SELECT part_id FROM old)
		INSERT INTO tea_writes (id) VALUES ($1) RETURNING ''`, name)
	return err
}

func (b contents) Move(ctx context.Context, from, to string) (existed bool, err error) {
	results, err := b.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		var moved string
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		// A fixed order avoids deadlocks between moves.
		batch.Queue("SELECT 1 FROM blobs WHERE name IN ($1, $2) ORDER BY name FOR UPDATE", from, to)
		batch.Queue("WITH old AS (DELETE FROM blobs WHERE name = $2 AND EXISTS (SELECT 1 FROM blobs WHERE name = $1) RETURNING part_id) INSERT INTO blobs_gone (part_id) SELECT part_id FROM old", from, to)
		batch.Queue("WITH moved AS (UPDATE blobs SET name = $3 WHERE name = $2 RETURNING 1) INSERT INTO tea_writes (id, result) SELECT $1::bytea, count(*) FROM moved RETURNING result", id, from, to).
			QueryRow(func(row pgx.Row) error { return row.Scan(&moved) })
		batch.Queue("COMMIT")
		err := b.d.transaction(ctx, c, batch)
		return []string{moved}, err
	})
	return err == nil && results[0] != "0", err
}

func (b contents) List(ctx context.Context, prefix, after string, limit int) (page []store.BlobInfo, err error) {
	if !isText(prefix) {
		return nil, nil
	}
	err = b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		page = nil
		rows, _ := c.Query(ctx, "SELECT name, size, modified FROM blobs WHERE starts_with(name, $1) AND name >= $1 AND name > $2 ORDER BY name LIMIT $3", prefix, after, limit) // ForEachRow returns the error
		var info store.BlobInfo
		var modified int64
		_, err := pgx.ForEachRow(rows, []any{&info.Name, &info.Size, &modified}, func() error {
			info.Modified = clock.FromMicro(modified)
			page = append(page, info)
			return nil
		})
		return err
	})
	return page, err
}
