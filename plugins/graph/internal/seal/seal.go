// Package seal keeps a checksum next to a closed database, for engines without
// checksums: a damaged page would crash the process or change a result. Start with
// [Check].
package seal

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

// Suffix is the suffix of the file with the size and the checksum.
const Suffix = ".seal"

// Sum computes the size and the checksum of the data written to it.
type Sum struct {
	size int64
	hash hash.Hash32
}

// NewSum returns an empty Sum.
func NewSum() *Sum { return &Sum{hash: crc32.New(crc32.MakeTable(crc32.Castagnoli))} }

// Write implements [io.Writer]. It does not fail.
func (s *Sum) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.hash.Write(p)
}

func (s *Sum) String() string { return fmt.Sprintf("%d %08x", s.size, s.hash.Sum32()) }

// Store seals the database at path, whose content has this sum.
func (s *Sum) Store(path string) error {
	return atomicfile.Write(path+Suffix, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, s)
		return err
	})
}

// Write seals a database that the engine has closed. It has no effect while the log file
// still exists.
func Write(path, log string) error {
	if info, err := os.Stat(log); err == nil && info.Size() > 0 {
		return nil
	}
	sum, err := sumOf(context.Background(), path)
	if err != nil {
		return err
	}
	return sum.Store(path)
}

// Check reports whether the database is sealed, and returns an error if it differs from
// its seal, or if there is a log: a copy has replaced a graph that was not closed, and the
// log belongs to the replaced graph. The caller must remove the seal before the first
// change.
func Check(ctx context.Context, path, log string) (sealed bool, err error) {
	want, err := os.ReadFile(path + Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, tea.Errorf(tea.InternalError, "open the graph: %w", err)
	}
	sum, err := sumOf(ctx, path)
	if err != nil {
		return false, err
	}
	if strings.TrimSpace(string(want)) != sum.String() {
		return false, store.Unusable(tea.InternalError, "restore a backup with graph.restore, or remove the checksum file to open it anyway", "the database %s of the graph is damaged: it differs from the checksum in %s", path, path+Suffix)
	}
	if info, err := os.Stat(log); err == nil && info.Size() > 0 {
		return false, store.Unusable(tea.InternalError, "move the log away to use the copy without its changes", "the log %s does not belong to the database %s of the graph; a copy was probably put over a graph that had not been closed", log, path)
	}
	return true, nil
}

func sumOf(ctx context.Context, path string) (*Sum, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "open the graph: %w", err)
	}
	defer file.Close()
	sum := NewSum()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(sum, file, 4<<20)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return sum, nil
}

// Remove removes the seal durably. Call it before a change of the database.
func Remove(path string) error {
	err := os.Remove(path + Suffix)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return tea.Errorf(tea.InternalError, "write to the graph: %w", err)
	}
	return nil
}
