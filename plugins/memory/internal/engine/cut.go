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
	size, kept, err := changeLog(log, func(file *os.File) error { return file.Truncate(position) })
	return fmt.Sprintf("the last %d of %d bytes of the database's log are damaged, as after a power failure; the changes in them are lost, and a copy of the damaged log is in %s", size-position, size, kept), err
}

// Damage is a part of a log with wrong bytes.
type Damage struct {
	Position int64
	// Correct are the right bytes; nil if they are not known.
	Correct []byte
}

// RepairLog repairs the damage of a log that find returns, until find returns nil. It
// returns messages for the user.
func RepairLog(log string, find func(log string) (*Damage, error)) (repaired []string, err error) {
	for {
		found, err := find(log)
		if found == nil || err != nil {
			return repaired, err
		}
		what, err := found.repair(log)
		if err != nil {
			return repaired, err
		}
		repaired = append(repaired, what)
	}
}

// repair corrects the bytes if they are known, and otherwise cuts the log.
func (d Damage) repair(log string) (repaired string, err error) {
	if d.Correct == nil {
		return CutLog(log, d.Position)
	}
	_, kept, err := changeLog(log, func(file *os.File) error {
		_, err := file.WriteAt(d.Correct, d.Position)
		return err
	})
	return fmt.Sprintf("the database's log was damaged at position %d and is corrected; a copy of the damaged log is in %s", d.Position, kept), err
}

// changeLog copies a log to another file, and then changes it.
func changeLog(log string, change func(*os.File) error) (size int64, kept string, err error) {
	from, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	kept = log + time.Now().UTC().Format(".damaged-20060102T150405.000000000Z")
	to, err := os.OpenFile(kept, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, "", err
	}
	size, err = io.Copy(to, from)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return 0, "", errors.Join(fmt.Errorf("keep the damaged log: %w", err), os.Remove(kept))
	}
	if err = change(from); err == nil {
		err = from.Sync()
	}
	return size, kept, err
}
