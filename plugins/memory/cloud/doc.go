// Package cloud has the memory's databases and storage outside of the device. Each is a subpackage that exports a
// function Option. A program links only what it names: tea-plugin-memory-cloud links all of [Options], `tea build
// --with memory[postgres,s3]` only postgres and s3.
//
// docs/design/016-stores.md has the decisions.
package cloud

import (
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/azure"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/bucket"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/d1"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/firestore"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/gcs"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/libsql"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/objects"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/postgres"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/s3"
)

// Options returns all backends.
func Options() []memory.Option {
	return []memory.Option{azure.Option(), bucket.Option(), d1.Option(), firestore.Option(), gcs.Option(), libsql.Option(), objects.Option(), postgres.Option(), s3.Option()}
}
