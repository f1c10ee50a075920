// Package objects stores the memory as objects in S3, Google Cloud Storage or Azure Blob Storage, with which devices
// and browsers synchronise. Start with [Option].
package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/memory"
	blobs "github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed/objects"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Option adds the backend to the memory's bundle.
func Option() memory.Option { return memory.WithBackend(Backend()) }

// Backend returns the backend.
func Backend() store.Backend {
	schemes := []objstore.Scheme{s3.Scheme(), gcs.Scheme(), azure.Scheme()}
	return store.Backend{Name: objects.Engine, Env: blobs.Env(schemes), Open: func(ctx context.Context, c store.Config) (*store.Stores, error) {
		var settings objstore.Settings
		if err := c.Decode(&settings); err != nil {
			return nil, err
		}
		bucket, err := blobs.Open(ctx, c.URL, settings, c.Timeout, schemes...)
		if err != nil {
			return nil, err
		}
		s := objects.Stores(storage{bucket}, c)
		if c.Blobs != nil {
			s.Blobs = c.Blobs
		}
		return s, nil
	}}
}

// storage is a bucket as an objects.Storage.
type storage struct{ *objstore.Bucket }

func (s storage) Get(ctx context.Context, name, have string) ([]byte, string, error) {
	o, r, err := s.Bucket.Get(ctx, name, 0, objstore.All)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, "", fmt.Errorf("%w: %w", objects.ErrNotFound, err)
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	if have != "" && o.Version == have {
		return nil, o.Version, nil
	}
	data, err := io.ReadAll(r)
	return data, o.Version, err
}

func (s storage) Put(ctx context.Context, name string, data []byte, match string) (string, error) {
	if match == "" {
		match = objstore.Absent
	}
	o, err := s.Bucket.Put(ctx, name, bytes.NewReader(data), objstore.PutOptions{Match: match})
	if errors.Is(err, objstore.ErrConflict) {
		return "", fmt.Errorf("%w: %w", objects.ErrConflict, err)
	}
	return o.Version, err
}
