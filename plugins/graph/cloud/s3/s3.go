// Package s3 exports and imports graphs in Amazon S3 and compatible services.
package s3

import (
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/internal/objects"
)

// Option adds the storage to the graph's bundle.
func Option() graph.Option { return objects.Option(s3.Scheme()) }
