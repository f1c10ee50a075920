package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// blobStorage is a BlobStorage in tables. It is safe for concurrent use.
type blobStorage struct{ d *database }

var _ store.BlobStorage = (*blobStorage)(nil)

const (
	// partBytes is the size of a part of a blob.
	partBytes = 1 << 20
	// keepGone is how long the parts of replaced and removed blobs are kept for their readers.
	keepGone = "1 hour"
	listPage = 1000
)

// Put stores the data of r under name. The parts are written first; one statement then makes them visible.
func (b *blobStorage) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	buffer := make([]byte, partBytes)
	var id, size int64
	for n := 0; ; n++ {
		read, err := io.ReadFull(r, buffer)
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return store.BlobInfo{}, fmt.Errorf("read the content of blob %s: %w", name, err)
		}
		last := err != nil
		size += int64(read)
		data := buffer[:read]
		if last && n == 0 { // the usual case: one request
			return b.put(ctx, name, 0, size, data)
		}
		if n == 0 {
			if id, err = b.newID(ctx); err != nil {
				return store.BlobInfo{}, err
			}
		}
		if read > 0 {
			err := b.d.do(ctx, writing, func(ctx context.Context, c conn) error {
				_, err := c.Exec(ctx, "INSERT INTO blob_parts VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", id, n, data)
				return err
			})
			if err != nil {
				return store.BlobInfo{}, err
			}
		}
		if last {
			return b.put(ctx, name, id, size, nil)
		}
	}
}

// newID returns the number of a blob whose parts follow. Parts that never become a blob are removed later.
func (b *blobStorage) newID(ctx context.Context) (id int64, err error) {
	err = b.d.do(ctx, writing, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "INSERT INTO blobs_gone (part_id, at) VALUES (nextval('blob_ids'), now() + interval '1 day') RETURNING part_id").Scan(&id)
	})
	return id, err
}

// put publishes parts as the blob with a name: the stored parts of an id, or data if id is 0.
func (b *blobStorage) put(ctx context.Context, name string, id, size int64, data []byte) (store.BlobInfo, error) {
	now := b.d.micro()
	_, err := b.d.write(ctx, func(ctx context.Context, c conn, write []byte) ([]string, error) {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		batch.Queue(noteSQL, write)
		// Replacing a blob locks its row, so that each replaced content is in blobs_gone once.
		batch.Queue("INSERT INTO blobs VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING", name)
		batch.Queue("INSERT INTO blobs_gone (part_id) SELECT part_id FROM (SELECT part_id FROM blobs WHERE name = $1 FOR UPDATE) AS old WHERE part_id > 0", name)
		if id == 0 {
			batch.Queue("UPDATE blobs SET part_id = nextval('blob_ids'), size = $2, modified = $3 WHERE name = $1", name, size, now)
			batch.Queue("INSERT INTO blob_parts SELECT part_id, 0, $2 FROM blobs WHERE name = $1", name, data)
		} else {
			batch.Queue("UPDATE blobs SET part_id = $4, size = $2, modified = $3 WHERE name = $1", name, size, now, id)
			batch.Queue("DELETE FROM blobs_gone WHERE part_id = $1", id).Exec(func(tag pgconn.CommandTag) error {
				if tag.RowsAffected() == 0 { // its parts are removed too
					return tea.Errorf(tea.Timeout, "the upload of %s took longer than a day; store it again", name)
				}
				return nil
			})
		}
		forget(batch)
		batch.Queue("COMMIT")
		return nil, b.d.transaction(ctx, c, batch)
	})
	if err != nil {
		return store.BlobInfo{}, err
	}
	return store.BlobInfo{Name: name, Size: size, Modified: clock.FromMicro(now)}, nil
}

// forget removes some of the parts that are no longer read.
func forget(batch *pgx.Batch) {
	batch.Queue(`WITH old AS (DELETE FROM blobs_gone WHERE part_id IN (SELECT part_id FROM blobs_gone WHERE at < now() - interval '` + keepGone + `' LIMIT 10 FOR UPDATE SKIP LOCKED) RETURNING part_id)
		DELETE FROM blob_parts WHERE part_id IN (SELECT part_id FROM old)`)
}

// Stat describes a blob without reading it.
func (b *blobStorage) Stat(ctx context.Context, name string) (info store.BlobInfo, err error) {
	info, _, err = b.find(ctx, name)
	return info, err
}

func (b *blobStorage) find(ctx context.Context, name string) (info store.BlobInfo, id int64, err error) {
	if err := store.CheckBlobName(name); err != nil {
		return info, 0, err
	}
	var modified int64
	err = b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		err := c.QueryRow(ctx, "SELECT part_id, size, modified FROM blobs WHERE name = $1", name).Scan(&id, &info.Size, &modified)
		if errors.Is(err, pgx.ErrNoRows) {
			return missing(name)
		}
		return err
	})
	if err != nil {
		return store.BlobInfo{}, 0, err
	}
	info.Name, info.Modified = name, clock.FromMicro(modified)
	return info, id, nil
}

func missing(name string) error { return fmt.Errorf("blob %s: %w", name, store.ErrNotFound) }

// Get opens a blob for reading.
func (b *blobStorage) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := store.CheckBlobName(name); err != nil {
		return nil, err
	}
	r := &blobReader{b: b, ctx: ctx, name: name}
	err := b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		err := c.QueryRow(ctx, "SELECT part_id, size, coalesce(data, '') FROM blobs LEFT JOIN blob_parts USING (part_id) WHERE name = $1 AND coalesce(n, 0) = 0", name).Scan(&r.id, &r.left, &r.part)
		if errors.Is(err, pgx.ErrNoRows) {
			return missing(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.left -= int64(len(r.part))
	r.next = 1
	return r, nil
}

type blobReader struct {
	b    *blobStorage
	ctx  context.Context //nolint:containedctx // that of Get, as Read has none
	name string
	id   int64
	next int
	left int64 // bytes in further parts
	part []byte
}

func (r *blobReader) Read(p []byte) (int, error) {
	if len(r.part) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		err := r.b.d.do(r.ctx, reading, func(ctx context.Context, c conn) error {
			return c.QueryRow(ctx, "SELECT data FROM blob_parts WHERE part_id = $1 AND n = $2", r.id, r.next).Scan(&r.part)
		})
		if err != nil {
			return 0, fmt.Errorf("read blob %s: %w", r.name, err)
		}
		r.next++
		r.left -= int64(len(r.part))
	}
	n := copy(p, r.part)
	r.part = r.part[n:]
	return n, nil
}

func (r *blobReader) Close() error { return nil }

// Delete removes a blob.
func (b *blobStorage) Delete(ctx context.Context, name string) error {
	if err := store.CheckBlobName(name); err != nil {
		return err
	}
	_, err := b.d.statement(ctx, `WITH old AS (DELETE FROM blobs WHERE name = $2 RETURNING part_id), gone AS (INSERT INTO blobs_gone (part_id) SELECT part_id FROM old)
		INSERT INTO tea_writes (id) VALUES ($1) RETURNING ''`, name)
	return err
}

// Move renames a blob and replaces an existing one.
func (b *blobStorage) Move(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		if err := store.CheckBlobName(name); err != nil {
			return err
		}
	}
	if from == to {
		_, err := b.Stat(ctx, from)
		return err
	}
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
	if err == nil && results[0] == "0" {
		err = missing(from)
	}
	return err
}

// List returns the blobs whose names begin with prefix.
func (b *blobStorage) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		if !isText(prefix) {
			return
		}
		for after := ""; ; {
			var page []store.BlobInfo
			err := b.d.do(ctx, reading, func(ctx context.Context, c conn) error {
				page = nil
				rows, err := c.Query(ctx, `SELECT name, size, modified FROM blobs WHERE starts_with(name, $1) AND name >= $1 AND name > $2 ORDER BY name LIMIT $3`, prefix, after, listPage)
				if err != nil {
					return err
				}
				var info store.BlobInfo
				var modified int64
				_, err = pgx.ForEachRow(rows, []any{&info.Name, &info.Size, &modified}, func() error {
					info.Modified = clock.FromMicro(modified)
					page = append(page, info)
					return nil
				})
				return err
			})
			if err != nil {
				yield(store.BlobInfo{}, err)
				return
			}
			for _, info := range page {
				after = info.Name
				if !yield(info, nil) {
					return
				}
			}
			if len(page) < listPage {
				return
			}
		}
	}
}
