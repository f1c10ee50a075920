package filelock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// ErrLocked means that another open file has the lock.
var ErrLocked = errors.New("locked by another process")

// Open opens the file at path, which it creates if necessary, and locks it until it is
// closed. The error is [ErrLocked] if another open file has the lock.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := TryLock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// HeldError is returned by [Own] if another process has the lock. Holder describes that
// process.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return "in use by " + e.Holder }

// claim is the content of a lock file, used only for messages.
type claim struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// poll is the interval at which a waiting process retries.
const poll = 50 * time.Millisecond

// Own locks a directory by a file in it, which it creates, until [Close] or the end of the
// process. It waits up to timeout for other processes and then fails with a [*HeldError].
// Processes that only read share the lock; in a directory that they cannot write they need
// none, and the file is nil.
func Own(ctx context.Context, path string, timeout time.Duration, readOnly bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	try := TryLock
	if readOnly {
		try = TryRLock
		if err != nil {
			if file, err = os.Open(path); err != nil {
				return nil, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(timeout)
	for err = try(file); errors.Is(err, ErrLocked) && time.Now().Before(deadline); err = try(file) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(min(poll, time.Until(deadline))):
		}
	}
	switch {
	case errors.Is(err, ErrLocked):
		return nil, errors.Join(&HeldError{holder(file)}, file.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	case !readOnly:
		sign(file)
	}
	return file, nil
}

// sign overwrites the file without truncating it first, because some file systems sync a
// truncated file when it is closed, which would slow down the start. The lock works without
// the content, also on a full disk.
func sign(file *os.File) {
	text, _ := json.Marshal(claim{PID: os.Getpid(), Since: time.Now().UTC()}) // it never fails
	if n, err := file.WriteAt(append(text, '\n'), 0); err == nil {
		_ = file.Truncate(int64(n))
	}
}

// holder describes the holder of the lock that could not be taken.
func holder(file *os.File) string {
	if TryRLock(file) == nil {
		return "processes that read it"
	}
	var c claim
	if json.NewDecoder(io.NewSectionReader(file, 0, 1<<10)).Decode(&c) == nil && c.PID > 0 {
		return fmt.Sprintf("process %d (since %s)", c.PID, c.Since.Format(time.RFC3339))
	}
	return "another process"
}

// Close unlocks and closes a file, which can be nil. Without unlocking, a child process that
// is being started would keep the lock. The file is not removed, because otherwise two
// processes could lock two files with the same name.
func Close(file *os.File) error {
	if file == nil {
		return nil
	}
	return errors.Join(Unlock(file), file.Close())
}
