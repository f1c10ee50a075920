package memory

import (
	"errors"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
)

// embedded is a memory in a folder of this device.
type embedded struct {
	engine    *engine.Engine
	blobs     *blob.Folder
	longterm  *longterm.Memory
	vectors   *vectors.Index
	documents *documents.Documents
	tables    *tabular.Tables
}

func (e *embedded) close() error { return errors.Join(e.engine.Close(), e.blobs.Close()) }
