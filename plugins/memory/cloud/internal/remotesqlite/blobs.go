package remotesqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Blobs is a BlobStorage in the rows of a database. Contents are stored in parts. The parts of a replaced or removed
// blob are kept for an hour, for its readers, and the parts of an incomplete upload for a day.
type Blobs struct{ d *database }

var _ store.BlobStorage = (*Blobs)(nil)

const (
	// blobPart is the size of a part before it becomes base64.
	blobPart    = 384 << 10
	keepReading = 3600 // seconds
)

// Put stores the data of r under name. A content of up to 3 MB is one request.
func (b *Blobs) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := errors.Join(store.CheckBlobName(name), ctx.Err()); err != nil {
		return store.BlobInfo{}, err
	}
	if err := b.d.writable(ctx); err != nil {
		return store.BlobInfo{}, err
	}
	content := rand.Text()
	size, parts := int64(0), 0
	var waiting []string
	buffer := make([]byte, blobPart)
	for {
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			waiting = append(waiting, base64.StdEncoding.EncodeToString(buffer[:n]))
			size, parts = size+int64(n), parts+1
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return store.BlobInfo{}, fmt.Errorf("read the content of %s: %w", name, err)
		}
		if len(waiting) == requestParts {
			if err := b.upload(ctx, content, parts-len(waiting), waiting); err != nil {
				return store.BlobInfo{}, err
			}
			waiting = nil
		}
	}
	info := store.BlobInfo{Name: name, Size: size, Modified: b.d.now().UTC().Truncate(time.Microsecond)}
	return info, b.publish(ctx, info, content, parts, waiting)
}

// upload stores parts, numbered from from.
func (b *Blobs) upload(ctx context.Context, content string, from int, parts []string) error {
	statements := make([]Statement, len(parts))
	for i, part := range parts {
		statements[i] = Statement{"INSERT OR IGNORE INTO blob_parts VALUES (?1, CAST(?2 AS INTEGER), ?3, unixepoch() + 86400)", []string{content, integer(int64(from + i)), part}}
	}
	return b.d.server.Each(ctx, statements...)
}

// publish stores the last parts and assigns the content to a blob.
func (b *Blobs) publish(ctx context.Context, info store.BlobInfo, content string, parts int, last []string) error {
	w := write{refused: "(SELECT count(*) FROM blob_parts WHERE content = ?2) < CAST(?3 AS INTEGER)", args: []string{content, integer(int64(parts - len(last)))}}
	w.add("DELETE FROM blob_parts WHERE expires_at < unixepoch() AND " + pending)
	for i, part := range last {
		w.add("INSERT INTO blob_parts SELECT ?2, CAST(?3 AS INTEGER), ?4, NULL WHERE "+pending, content, integer(int64(parts-len(last)+i)), part)
	}
	w.add("UPDATE blob_parts SET expires_at = NULL WHERE content = ?2 AND "+pending, content)
	w.release(info.Name)
	w.add(`INSERT INTO blobs (name, content, size, modified) SELECT ?2, ?3, CAST(?4 AS INTEGER), CAST(?5 AS INTEGER) WHERE `+pending+`
		ON CONFLICT (name) DO UPDATE SET content = excluded.content, size = excluded.size, modified = excluded.modified`, info.Name, content, integer(info.Size), integer(info.Modified.UnixMicro()))
	_, err := b.d.do(ctx, w)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return tea.Errorf(tea.Timeout, "the upload of %s took longer than a day; store it again", info.Name)
	}
	return err
}

func (w *write) release(name string) {
	w.add(fmt.Sprintf("UPDATE blob_parts SET expires_at = unixepoch() + %d WHERE content = (SELECT content FROM blobs WHERE name = ?2) AND %s", keepReading, pending), name)
}

func toBlob(row []any) store.BlobInfo {
	return store.BlobInfo{Name: text(row, 0), Size: number(row, 1), Modified: time.UnixMicro(number(row, 2)).UTC()}
}

func noBlob(name string) error { return fmt.Errorf("blob %s: %w", name, store.ErrNotFound) }

// Get opens a blob for reading. It reads the first 3 MB.
func (b *Blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := store.CheckBlobName(name); err != nil {
		return nil, err
	}
	rows, err := b.d.query(ctx, fmt.Sprintf(`SELECT name, size, modified, content, -1 FROM blobs WHERE name = ?1
		UNION ALL SELECT data, NULL, NULL, NULL, part FROM blob_parts WHERE content = (SELECT content FROM blobs WHERE name = ?1) AND part < %d ORDER BY 5`, requestParts), name)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, noBlob(name)
	}
	r := &blobReader{ctx: ctx, b: b, name: name, content: text(rows[0], 3), left: toBlob(rows[0]).Size}
	return r, r.take(rows[1:])
}

type blobReader struct {
	ctx           context.Context //nolint:containedctx // that of Get, as with a response body
	b             *Blobs
	name, content string
	parts         int
	left          int64 // bytes that are not in data
	data          bytes.Buffer
}

func (r *blobReader) take(parts Result) error {
	for _, row := range parts {
		raw, err := base64.StdEncoding.DecodeString(text(row, 0))
		if err != nil {
			return tea.Errorf(tea.InternalError, "blob %s is damaged: %w", r.name, err)
		}
		r.data.Write(raw)
		r.left -= int64(len(raw))
	}
	r.parts += len(parts)
	return nil
}

// Read reads the content.
func (r *blobReader) Read(p []byte) (int, error) {
	if r.data.Len() == 0 && r.left > 0 {
		rows, err := r.b.d.query(r.ctx, fmt.Sprintf("SELECT data FROM blob_parts WHERE content = ?1 AND part >= %d ORDER BY part LIMIT %d", r.parts, requestParts), r.content)
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, tea.Errorf(tea.InternalError, "a part of blob %s is missing", r.name)
		}
		if err := r.take(rows); err != nil {
			return 0, err
		}
	}
	return r.data.Read(p)
}

// Close ends the reading.
func (r *blobReader) Close() error { return nil }

// Stat describes a blob.
func (b *Blobs) Stat(ctx context.Context, name string) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	rows, err := b.d.query(ctx, "SELECT name, size, modified FROM blobs WHERE name = ?1", name)
	if err != nil {
		return store.BlobInfo{}, err
	}
	if len(rows) == 0 {
		return store.BlobInfo{}, noBlob(name)
	}
	return toBlob(rows[0]), nil
}

// Delete removes a blob.
func (b *Blobs) Delete(ctx context.Context, name string) error {
	if err := store.CheckBlobName(name); err != nil {
		return err
	}
	var w write
	w.release(name)
	w.add("DELETE FROM blobs WHERE name = ?2 AND "+pending, name)
	_, err := b.d.do(ctx, w)
	return err
}

// Move renames a blob and replaces an existing one.
func (b *Blobs) Move(ctx context.Context, from, to string) error {
	if err := errors.Join(store.CheckBlobName(from), store.CheckBlobName(to)); err != nil {
		return err
	}
	w := write{refused: "NOT EXISTS (SELECT 1 FROM blobs WHERE name = ?2)", args: []string{from}}
	if from != to {
		w.release(to)
		w.add("DELETE FROM blobs WHERE name = ?2 AND "+pending, to)
		w.add("UPDATE blobs SET name = ?2 WHERE name = ?3 AND "+pending, to, from)
	}
	_, err := b.d.do(ctx, w)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return noBlob(from)
	}
	return err
}

// listRows is the number of blobs that one request lists.
const listRows = 1000

// List returns the blobs whose names begin with prefix.
func (b *Blobs) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		begins, args := prefixed("name", prefix, []string{""})
		for {
			rows, err := b.d.query(ctx, fmt.Sprintf("SELECT name, size, modified FROM blobs WHERE name > ?1%s ORDER BY name LIMIT %d", begins, listRows), args...)
			if err != nil {
				yield(store.BlobInfo{}, err)
				return
			}
			for _, row := range rows {
				if args[0] = text(row, 0); !yield(toBlob(row), nil) {
					return
				}
			}
			if len(rows) < listRows {
				return
			}
		}
	}
}
