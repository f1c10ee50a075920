package remotesqlite

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// contents stores the contents of files in the rows of a database.
type contents struct{ d *database }

var _ blob.Database = contents{}

// Contents stores the contents of files. The size of a part is that before it becomes
// base64; a content of up to 3 MB is one request.
func (d *database) Contents() store.BlobStorage {
	return &blob.Parts{Database: contents{d}, Size: 384 << 10, AtOnce: requestParts, Now: d.now}
}

const keepReading = 3600 // seconds

// AddParts adds parts, which expire in a day.
func (b contents) AddParts(ctx context.Context, id string, from int, parts [][]byte) (string, error) {
	if err := b.d.writable(ctx); err != nil {
		return "", err
	}
	if id == "" {
		id = rand.Text()
	}
	statements := make([]Statement, len(parts))
	for i, part := range parts {
		statements[i] = Statement{"INSERT OR IGNORE INTO blob_parts VALUES (?1, CAST(?2 AS INTEGER), ?3, unixepoch() + 86400)", []string{id, integer(int64(from + i)), base64.StdEncoding.EncodeToString(part)}}
	}
	return id, b.d.server.Each(ctx, statements...)
}

func (b contents) Publish(ctx context.Context, info store.BlobInfo, c blob.Content, from int) error {
	if c.ID == "" {
		c.ID = rand.Text()
	}
	w := write{refused: "(SELECT count(*) FROM blob_parts WHERE content = ?2) < CAST(?3 AS INTEGER)", args: []string{c.ID, integer(int64(from))}}
	w.add("DELETE FROM blob_parts WHERE expires_at < unixepoch() AND " + pending)
	for i, part := range c.Parts {
		w.add("INSERT INTO blob_parts SELECT ?2, CAST(?3 AS INTEGER), ?4, NULL WHERE "+pending, c.ID, integer(int64(from+i)), base64.StdEncoding.EncodeToString(part))
	}
	w.add("UPDATE blob_parts SET expires_at = NULL WHERE content = ?2 AND "+pending, c.ID)
	w.release(info.Name)
	w.add(`INSERT INTO blobs (name, content, size, modified) SELECT ?2, ?3, CAST(?4 AS INTEGER), CAST(?5 AS INTEGER) WHERE `+pending+`
		ON CONFLICT (name) DO UPDATE SET content = excluded.content, size = excluded.size, modified = excluded.modified`, info.Name, c.ID, integer(info.Size), integer(info.Modified.UnixMicro()))
	_, err := b.d.do(ctx, w)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return blob.Expired(info.Name)
	}
	return err
}

func (w *write) release(name string) {
	w.add(fmt.Sprintf("UPDATE blob_parts SET expires_at = unixepoch() + %d WHERE content = (SELECT content FROM blobs WHERE name = ?2) AND %s", keepReading, pending), name)
}

func (b contents) Open(ctx context.Context, name string) (c blob.Content, err error) {
	rows, err := b.d.query(ctx, fmt.Sprintf(`SELECT content, size, -1 FROM blobs WHERE name = ?1
		UNION ALL SELECT data, NULL, part FROM blob_parts WHERE content = (SELECT content FROM blobs WHERE name = ?1) AND part < %d ORDER BY 3`, requestParts), name)
	if err != nil {
		return c, err
	}
	if len(rows) == 0 {
		return c, blob.Missing(name)
	}
	c.ID, c.Size = text(rows[0], 0), number(rows[0], 1)
	c.Parts, err = decoded(rows[1:])
	return c, err
}

func (b contents) ReadParts(ctx context.Context, id string, from int) ([][]byte, error) {
	rows, err := b.d.query(ctx, fmt.Sprintf("SELECT data FROM blob_parts WHERE content = ?1 AND part >= %d ORDER BY part LIMIT %d", from, requestParts), id)
	if err != nil {
		return nil, err
	}
	return decoded(rows)
}

func decoded(rows Result) ([][]byte, error) {
	parts := make([][]byte, len(rows))
	for i, row := range rows {
		var err error
		if parts[i], err = base64.StdEncoding.DecodeString(text(row, 0)); err != nil {
			return nil, tea.Errorf(tea.InternalError, "the content is damaged: %w", err)
		}
	}
	return parts, nil
}

func (b contents) Delete(ctx context.Context, name string) error {
	var w write
	w.release(name)
	w.add("DELETE FROM blobs WHERE name = ?2 AND "+pending, name)
	_, err := b.d.do(ctx, w)
	return err
}

func (b contents) Move(ctx context.Context, from, to string) (existed bool, err error) {
	w := write{refused: "NOT EXISTS (SELECT 1 FROM blobs WHERE name = ?2)", args: []string{from}}
	w.release(to)
	w.add("DELETE FROM blobs WHERE name = ?2 AND "+pending, to)
	w.add("UPDATE blobs SET name = ?2 WHERE name = ?3 AND "+pending, to, from)
	_, err = b.d.do(ctx, w)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

func (b contents) List(ctx context.Context, prefix, after string, limit int) ([]store.BlobInfo, error) {
	begins, args := prefixed("name", prefix, []string{after})
	rows, err := b.d.query(ctx, fmt.Sprintf("SELECT name, size, modified FROM blobs WHERE name > ?1%s ORDER BY name LIMIT %d", begins, limit), args...)
	all := make([]store.BlobInfo, len(rows))
	for i, row := range rows {
		all[i] = store.BlobInfo{Name: text(row, 0), Size: number(row, 1), Modified: clock.FromMicro(number(row, 2))}
	}
	return all, err
}
