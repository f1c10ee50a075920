// Package gcs stores the memory's blobs in Google Cloud Storage.
package gcs

import (
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
)

// Option adds the storage to the memory's bundle.
func Option() memory.Option { return memory.WithBlobs(objects.Backend(gcs.Scheme())) }
