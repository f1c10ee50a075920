package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

const ownerFile = "owner.lock"

// owner is this process's lock on a folder.
type owner struct {
	lock  *os.File
	files []watched
}

// own locks the folder, see [filelock.Own].
func own(ctx context.Context, dir string, timeout time.Duration, readOnly bool) (*owner, error) {
	path := filepath.Join(dir, ownerFile)
	lock, err := filelock.Own(ctx, path, timeout, readOnly)
	if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
		e := tea.Errorf(tea.ConnectionError, "the memory in %s is in use by %s (waited %v); end that process, raise settings.memory.lock_timeout, or set another settings.memory.path", dir, held.Holder, timeout)
		e.Source = "memory"
		return nil, e
	}
	o := &owner{lock: lock}
	if err == nil && !readOnly {
		err = o.watch(path)
	}
	if err != nil {
		return nil, errors.Join(err, o.release())
	}
	return o, nil
}

func (o *owner) release() error { return filelock.Close(o.lock) }
