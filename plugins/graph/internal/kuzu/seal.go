//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// sealSuffix is that of the file with the size and the checksum of a database
// that was closed. The engine has none: a damaged page ends the process, or a
// query never ends. The seal is removed before the first change.
const sealSuffix = ".seal"

func newChecksum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// writeSeal seals the database with a checksum of its file.
func writeSeal(path string, size int64, sum hash.Hash32) error {
	return atomicfile.Write(path+sealSuffix, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d %08x\n", size, sum.Sum32())
		return err
	})
}

// seal seals a database that the engine has closed.
func seal(path string) error {
	if info, err := os.Stat(path + walSuffix); err == nil && info.Size() > 0 {
		return nil // a checkpoint has failed
	}
	size, sum, err := checksum(context.Background(), path)
	if err != nil {
		return err
	}
	return writeSeal(path, size, sum)
}

// checkSeal reports whether the database is sealed. A database that differs from
// its seal is an error.
func checkSeal(ctx context.Context, path string) (sealed bool, err error) {
	want, err := os.ReadFile(path + sealSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, tea.Errorf(tea.InternalError, "open the graph: %w", err)
	}
	size, sum, err := checksum(ctx, path)
	if err != nil {
		return false, err
	}
	if strings.TrimSpace(string(want)) != fmt.Sprintf("%d %08x", size, sum.Sum32()) {
		return false, store.Unusable(tea.InternalError, "restore a backup with graph.restore, or remove the checksum to open it all the same", "the database %s of the graph is damaged: it differs from the checksum in %s", path, path+sealSuffix)
	}
	return true, nil
}

func checksum(ctx context.Context, path string) (size int64, sum hash.Hash32, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, nil, tea.Errorf(tea.InternalError, "open the graph: %w", err)
	}
	defer file.Close()
	sum = newChecksum()
	for err == nil {
		var n int64
		if err = ctx.Err(); err == nil {
			n, err = io.CopyN(sum, file, 4<<20)
		}
		size += n
	}
	if !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	return size, sum, nil
}

// unseal removes the seal before a change. The caller has the only writer.
func (db *DB) unseal() error {
	if !db.sealed {
		return nil
	}
	err := os.Remove(db.path + sealSuffix)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.SyncDir(filepath.Dir(db.path))
	}
	if err != nil {
		return tea.Errorf(tea.InternalError, "write to the graph: %w", err)
	}
	db.sealed = false
	return nil
}
