// Package cloud adds object storage to exports and imports of graphs. Each service
// is a package below this one that exports a function Option. A program links only
// the services that it names: tea-plugin-graph-cloud all [Options], and
// `tea build --with graph[s3]` the package s3.
package cloud

import (
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/azure"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/gcs"
	"github.com/the-edge-agent/tea/plugins/graph/cloud/s3"
)

// Options returns all services.
func Options() []graph.Option { return []graph.Option{azure.Option(), gcs.Option(), s3.Option()} }
