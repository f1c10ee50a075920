package engine

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

const (
	ownerFile = "owner.lock"
	// lockPoll is the interval at which a waiting process tries again.
	lockPoll = 50 * time.Millisecond
)

// owner is this process's lock of a folder. The kernel releases it when the
// process ends, also after a crash; the file's content is for messages only.
type owner struct {
	lock  *flock.Flock
	files []watched
}

// claim is the content of the lock file, which describes its holder.
type claim struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// own locks the folder. It waits up to timeout for another process. Processes
// that only read share it with each other.
func own(ctx context.Context, dir string, timeout time.Duration, readOnly bool) (*owner, error) {
	path := filepath.Join(dir, ownerFile)
	o := &owner{lock: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))}
	try, wait := o.lock.TryLock, o.lock.TryLockContext
	if readOnly {
		flags, ok := sharedLockFlags(path)
		if !ok {
			return o, nil // the folder cannot be written
		}
		o.lock = flock.New(path, flock.SetFlag(flags), flock.SetPermissions(0o600))
		try, wait = o.lock.TryRLock, o.lock.TryRLockContext
	}
	locked, err := try()
	if err == nil && !locked && timeout > 0 {
		waiting, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		locked, err = wait(waiting, lockPoll)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = nil
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", path, err)
	case !locked:
		return nil, lockedError(dir, o.holder(path), timeout)
	case readOnly:
		return o, nil
	}
	text, err := json.Marshal(claim{PID: os.Getpid(), Since: time.Now().UTC()})
	if err == nil {
		// The lock works without the content: a full disk can be read.
		if err = sign(path, append(text, '\n')); errors.Is(err, syscall.ENOSPC) {
			err = nil
		}
	}
	if err == nil {
		err = o.watch(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), o.release())
	}
	return o, nil
}

// sharedLockFlags returns how the lock file can be opened by a process that
// reads; false where it does not exist and cannot be created.
func sharedLockFlags(path string) (flags int, ok bool) {
	for _, flags := range []int{os.O_CREATE | os.O_RDWR, os.O_RDONLY} {
		file, err := os.OpenFile(path, flags, 0o600)
		if err == nil {
			return flags, file.Close() == nil
		}
	}
	return 0, false
}

// sign overwrites the file. Some file systems sync a file that was truncated
// first when it is closed, which would slow down the start.
func sign(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(text, 0)
	if err == nil {
		err = file.Truncate(int64(len(text)))
	}
	return errors.Join(err, file.Close())
}

// holder describes who has the lock that could not be taken.
func (o *owner) holder(path string) string {
	if shared, err := o.lock.TryRLock(); err == nil && shared && o.lock.Unlock() == nil {
		return "processes that read it"
	}
	var c claim
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &c) == nil && c.PID > 0 {
		return fmt.Sprintf("process %d (since %s)", c.PID, c.Since.Format(time.RFC3339))
	}
	return "another process"
}

func lockedError(dir, who string, waited time.Duration) error {
	e := tea.Errorf(tea.ConnectionError, "the memory in %[2]s is in use by %[1]s (waited %[3]v); end that process, raise settings.memory.lock_timeout, or set another settings.memory.path", who, dir, waited)
	e.Source = "memory"
	return e
}

// release unlocks the folder. The file stays: without it two processes could
// lock two files of the same name.
func (o *owner) release() error { return o.lock.Unlock() }
