package keyed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// blobs stores each blob as a value with its description.
type blobs struct{ d *Database }

var _ store.BlobStorage = (*blobs)(nil)

func blobInfo(name string, raw []byte) store.BlobInfo {
	var size, modified int64
	c := cursor{raw: raw}
	c.numbers(&size, &modified)
	return store.BlobInfo{Name: name, Size: size, Modified: clock.FromMicro(modified)}
}

func (b *blobs) Put(ctx context.Context, name string, r io.Reader) (store.BlobInfo, error) {
	if err := store.CheckBlobName(name); err != nil {
		return store.BlobInfo{}, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return store.BlobInfo{}, fmt.Errorf("write the blob %s: %w", name, err)
	}
	if data == nil {
		data = []byte{}
	}
	described := encodeNumbers(int64(len(data)), b.d.o.Now().UnixMicro())
	err = b.d.write(ctx, func(t *tx) error {
		t.set(tableKey(fileTable, name), described)
		t.set(tableKey(contentTable, name), data)
		return nil
	})
	return blobInfo(name, described), err
}

func missingBlob(name string) error { return fmt.Errorf("blob %s: %w", name, store.ErrNotFound) }

func (b *blobs) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	raw, err := b.read(ctx, contentTable, name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

func (b *blobs) read(ctx context.Context, table byte, name string) ([]byte, error) {
	if err := store.CheckBlobName(name); err != nil {
		return nil, err
	}
	found, err := b.d.o.DB.Get(ctx, tableKey(table, name))
	if err == nil && found[0] == nil {
		err = missingBlob(name)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (b *blobs) Stat(ctx context.Context, name string) (store.BlobInfo, error) {
	raw, err := b.read(ctx, fileTable, name)
	if err != nil {
		return store.BlobInfo{}, err
	}
	return blobInfo(name, raw), nil
}

func (b *blobs) Delete(ctx context.Context, name string) error {
	if err := store.CheckBlobName(name); err != nil {
		return err
	}
	return b.d.write(ctx, func(t *tx) error {
		t.remove(tableKey(fileTable, name))
		t.remove(tableKey(contentTable, name))
		return nil
	})
}

func (b *blobs) Move(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		if err := store.CheckBlobName(name); err != nil {
			return err
		}
	}
	return b.d.write(ctx, func(t *tx) error {
		found, err := b.d.o.DB.Get(ctx, tableKey(fileTable, from), tableKey(contentTable, from))
		if err != nil {
			return err
		}
		if found[0] == nil {
			return missingBlob(from)
		}
		t.remove(tableKey(fileTable, from))
		t.remove(tableKey(contentTable, from))
		t.set(tableKey(fileTable, to), found[0])
		t.set(tableKey(contentTable, to), found[1])
		return nil
	})
}

func (b *blobs) List(ctx context.Context, prefix string) iter.Seq2[store.BlobInfo, error] {
	return func(yield func(store.BlobInfo, error) bool) {
		from := tableKey(fileTable, prefix)
		ended := false
		err := b.d.each(ctx, from, behind(from), func(p Pair) (bool, error) {
			ended = !yield(blobInfo(p.Key[1:], p.Value), nil)
			return !ended, nil
		})
		if err != nil && !ended {
			yield(store.BlobInfo{}, err)
		}
	}
}
