package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	tea "github.com/the-edge-agent/tea/sdk"
)

// lockPoll is the interval at which a waiting process tries again.
const lockPoll = 50 * time.Millisecond

// owner is this process's lock of a folder. The kernel releases it when the
// process ends, also after a crash; the file's content is for messages only.
type owner struct{ lock *flock.Flock }

// claim is the content of the lock file, which describes its holder.
type claim struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// own locks the folder. It waits up to timeout for another process.
func own(ctx context.Context, dir string, timeout time.Duration) (*owner, error) {
	path := filepath.Join(dir, ownerFile)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, tea.Errorf(tea.ValidationError, "%s is not a file; remove it, or set another settings.graph.path", path)
	}
	o := &owner{lock: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))}
	locked, err := o.lock.TryLock()
	if err == nil && !locked && timeout > 0 {
		waiting, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		locked, err = o.lock.TryLockContext(waiting, lockPoll)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = nil
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, systemError("lock the graph", err)
	case !locked:
		return nil, tea.Errorf(tea.ConnectionError, "the graph in %s is in use by %s (waited %v); end that process, raise settings.graph.lock_timeout, or set another settings.graph.path", dir, holder(path), timeout)
	}
	// The lock works without the content: a full disk can be read.
	if text, err := json.Marshal(claim{PID: os.Getpid(), Since: time.Now().UTC()}); err == nil {
		_ = os.WriteFile(path, append(text, '\n'), 0o600)
	}
	return o, nil
}

// holder describes who has the lock that could not be taken.
func holder(path string) string {
	var c claim
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &c) == nil && c.PID > 0 {
		return fmt.Sprintf("process %d (since %s)", c.PID, c.Since.Format(time.RFC3339))
	}
	return "another process"
}

// release unlocks the folder. The file stays: without it two processes could
// lock two files of the same name.
func (o *owner) release() error { return o.lock.Unlock() }

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isReadOnly(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS)
}
