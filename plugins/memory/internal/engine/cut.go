package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// CutLog truncates the log of a database at the position where its damage begins,
// after it copied the whole log to another file. It returns a message for the
// user.
func CutLog(log string, position int64) (repaired string, err error) {
	from, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	kept := log + time.Now().UTC().Format(".damaged-20060102T150405.000000000Z")
	to, err := os.OpenFile(kept, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	size, err := io.Copy(to, from)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("keep the damaged log: %w", err), os.Remove(kept))
	}
	if err = from.Truncate(position); err == nil {
		err = from.Sync()
	}
	return fmt.Sprintf("the last %d of %d bytes of the database's log are damaged, as after a power failure; the changes in them are lost, and a copy of the damaged log is in %s", size-position, size, kept), err
}
