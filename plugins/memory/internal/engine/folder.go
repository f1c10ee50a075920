package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// identityFile has the identity of the database in its folder. It makes a lost
// database an error instead of an empty memory.
const identityFile = "database.id"

// readIdentity returns the identity of the folder's database, "" for a new
// folder. A power cut can leave zeros in the file: it is written when the
// database is created, and its name can be on disk before its content.
func readIdentity(dir string) (string, error) {
	stored, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the identity of the memory: %w", err)
	}
	return strings.Trim(string(stored), "\x00"), nil
}

// checkThere returns an error if the database is missing, empty or not a regular
// file.
func checkThere(dir, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lostDatabase(dir, "is missing")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return lostDatabase(dir, "is not a file")
	case info.Size() == 0:
		return lostDatabase(dir, "is empty")
	}
	return nil
}

// writeIdentity writes the identity of a database in a new folder, and returns an
// error for the database of another folder.
func writeIdentity(dir, stored, identity string) error {
	switch {
	case stored == identity:
		return nil
	case !strings.HasPrefix(identity, stored): // else its end is missing
		return lostDatabase(dir, "was replaced by another one")
	}
	path := filepath.Join(dir, identityFile)
	// Renamed when complete: a part would be a different identity.
	err := os.WriteFile(path+".new", []byte(identity), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if store.IsFull(err) {
		return nil // the next open writes it
	}
	if err != nil {
		return fmt.Errorf("write the identity of the memory: %w", err)
	}
	return nil
}

func lostDatabase(dir, problem string) error {
	return tea.Errorf(tea.InternalError, "the database of the memory in %s %s; restore it, delete %s to continue without it, or start a new memory with `tea memory reset`",
		dir, problem, filepath.Join(dir, identityFile))
}

const (
	// reserveFile reserves disk space for calls that free space.
	reserveFile = "reserve"
	reserveSize = 1 << 20
)

// keepReserve creates the reserve if it does not exist and the disk has space.
func keepReserve(dir string) {
	path := filepath.Join(dir, reserveFile)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveSize {
		return
	}
	// Written, not truncated to its size: the blocks must be allocated.
	if err := os.WriteFile(path, make([]byte, reserveSize), 0o600); err != nil {
		_ = os.Remove(path) // the disk is full or read-only; the next open tries again
	}
}

// releaseReserve frees the space of the reserve and reports whether it existed.
func (e *Engine) releaseReserve() bool {
	return os.Remove(filepath.Join(e.options.Dir, reserveFile)) == nil
}
