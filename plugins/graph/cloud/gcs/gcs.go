// Package gcs exports and imports graphs in Google Cloud Storage.
package gcs

import (
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/internal/objects"
)

// Option adds the storage to the graph's bundle.
func Option() graph.Option { return objects.Option(gcs.Scheme()) }
