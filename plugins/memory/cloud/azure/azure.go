// Package azure stores the memory's blobs in Azure Blob Storage.
package azure

import (
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
)

// Option adds the storage to the memory's bundle.
func Option() memory.Option { return memory.WithBlobs(objects.Backend(azure.Scheme())) }
