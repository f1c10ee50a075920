// Package s3 stores the memory's blobs in Amazon S3 and compatible services.
package s3

import (
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
)

// Option adds the storage to the memory's bundle.
func Option() memory.Option { return memory.WithBlobs(objects.Backend(s3.Scheme())) }
