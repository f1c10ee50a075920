package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// identityFile has the identity of the database in its folder. It tells a
// database that was lost from one that was never there: the first is an error,
// not an empty memory.
const identityFile = "database.id"

// notedIdentity is the identity of the database that the folder has had, "" for
// a new folder.
func notedIdentity(dir string) (string, error) {
	noted, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read which database the memory has: %w", err)
	}
	return string(noted), nil
}

// checkThere refuses to make a database anew where one is missing or empty.
func checkThere(dir, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lostDatabase(dir, "is gone")
	case err != nil:
		return err
	case info.Size() == 0:
		return lostDatabase(dir, "is empty")
	}
	return nil
}

// noteIdentity notes the identity of a database in a new folder, and refuses a
// database that is not the folder's.
func noteIdentity(dir, noted, identity string) error {
	switch noted {
	case identity:
		return nil
	case "":
	default:
		return lostDatabase(dir, "was replaced by another one")
	}
	path := filepath.Join(dir, identityFile)
	// Under another name first: half an identity would be another one.
	err := os.WriteFile(path+".new", []byte(identity), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if store.IsFull(err) {
		return nil // the next opening notes it
	}
	if err != nil {
		return fmt.Errorf("note which database the memory has: %w", err)
	}
	return nil
}

func lostDatabase(dir, problem string) error {
	return tea.Errorf(tea.InternalError, "the database of the memory in %s %s; put it back, delete %s to go on without it, or start a new memory with `tea memory reset`",
		dir, problem, filepath.Join(dir, identityFile))
}
