// Package azure exports and imports graphs in Azure Blob Storage.
package azure

import (
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/internal/objects"
)

// Option adds the storage to the graph's bundle.
func Option() graph.Option { return objects.Option(azure.Scheme()) }
