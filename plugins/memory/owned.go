package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	tea "github.com/the-edge-agent/tea/sdk"
)

// databaseID has the identity of the database whose files lie in the folder.
const databaseID = "database.id"

// owned says by its error that the folder's files belong to another database:
// the one that is open names none of them, and a sweep would remove them all.
// That is so when a database was lost and made anew. The first call notes the
// identity.
func (f *folder) owned(ctx context.Context) error {
	identity, err := f.engine.Identity(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, databaseID)
	noted, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read whose files these are: %w", err)
	case len(noted) == 0: // never written, or torn by a crash
		if err := os.WriteFile(path, []byte(identity), 0o600); err != nil {
			return fmt.Errorf("note whose files these are: %w", err)
		}
		return nil
	case string(noted) != identity:
		return tea.Errorf(tea.ValidationError, "the files in %s belong to another database, which was removed or replaced; nothing is removed: put it back, or delete %s to let them go", f.dir, path)
	}
	return nil
}
