package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// maxFileSize bounds a journal, because a reader holds the whole file in memory,
// also on 32-bit devices.
const maxFileSize = math.MaxInt32

// file is the part of an open file that a writer uses; tests make it fail.
type file interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// journalFile is an owned file whose Sync skips inode metadata. Its errors name
// path, because a new file has a temporary name until it is complete.
type journalFile struct {
	*os.File
	path string
}

func (f journalFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	return n, f.named(err)
}

func (f journalFile) Truncate(size int64) error { return f.named(f.File.Truncate(size)) }
func (f journalFile) Sync() error               { return f.named(atomicfile.SyncData(f.File)) }
func (f journalFile) Close() error              { return f.named(releaseFile(f.File)) }

func (f journalFile) named(err error) error {
	if fault := (*os.PathError)(nil); errors.As(err, &fault) {
		return &os.PathError{Op: fault.Op, Path: f.path, Err: fault.Err}
	}
	return err
}

// writer appends frames to a file atomically. It is not safe for concurrent use.
type writer struct {
	f    file
	path string
	// size is the end of the last whole frame.
	size int64
	// durable is the length of the file that is known to be on disk.
	durable int64
	// poisoned is set once nothing more must be written.
	poisoned *PoisonedError
}

// write appends frames. After an error the file contains none of them, and they
// can be written again, except after a [*PoisonedError].
func (w *writer) write(frames []byte) error {
	if w.poisoned != nil {
		return w.poisoned
	}
	if w.size+int64(len(frames)) > maxFileSize {
		return fmt.Errorf("append to checkpoint %s: %w", w.path, syscall.EFBIG)
	}
	sealFrames(frames, w.durable)
	if _, err := w.f.WriteAt(frames, w.size); err != nil {
		if undo := w.f.Truncate(w.size); undo != nil {
			return w.poison(fmt.Errorf("%w; and the write could not be undone: %w", err, undo))
		}
		return fmt.Errorf("append to checkpoint: %w", err)
	}
	w.size += int64(len(frames))
	return nil
}

// sync makes all writes durable. A failure is final: the kernel may have dropped
// the data and report success for a second attempt.
func (w *writer) sync() error {
	if w.poisoned != nil {
		return w.poisoned
	}
	if w.durable == w.size {
		return nil
	}
	if err := w.f.Sync(); err != nil {
		// The content of the disk is unknown, so it is cut off. If that fails, the
		// next owner recovers the file.
		_ = w.f.Truncate(w.durable)
		return w.poison(err)
	}
	w.durable = w.size
	return nil
}

func (w *writer) poison(err error) error {
	w.poisoned = &PoisonedError{Path: w.path, Err: err}
	return w.poisoned
}

// openJournalFile opens a regular file and refuses anything else, such as a pipe,
// without waiting for it.
func openJournalFile(path string, flag int) (*os.File, error) {
	f, err := openFile(path, flag|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: fmt.Errorf("not a regular file")}
	}
	if err == nil && info.Size() > maxFileSize {
		err = &os.PathError{Op: "open", Path: path, Err: syscall.EFBIG}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
