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

// maxFileSize is what a journal may grow to, and what is read: a reader holds
// the whole file in memory, on 32-bit devices too.
const maxFileSize = math.MaxInt32

// file is what a writer needs of an open file; tests let it fail.
type file interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// journalFile is an owned file whose Sync leaves out what only concerns its
// inode. Its errors name path, since a new file is written under another name
// until it is whole.
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

// writer appends frames to a file, all of them or none. It is for one
// goroutine at a time.
type writer struct {
	f    file
	path string
	// size is the end of the last whole frame.
	size int64
	// durable is how much of the file is known to be on disk.
	durable int64
	// poisoned is set once, when nothing more may be written.
	poisoned *PoisonedError
}

// write appends frames. On an error nothing of them stays in the file, and
// the same frames may be written again, unless it is a [*PoisonedError].
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
			return w.poison(fmt.Errorf("%w; and taking back what was written: %w", err, undo))
		}
		return fmt.Errorf("append to checkpoint: %w", err)
	}
	w.size += int64(len(frames))
	return nil
}

// sync makes what was written durable. A failure is final: the kernel may have
// dropped the data and call a second attempt a success.
func (w *writer) sync() error {
	if w.poisoned != nil {
		return w.poisoned
	}
	if w.durable == w.size {
		return nil
	}
	if err := w.f.Sync(); err != nil {
		// It is not known what is on disk, so it is cut off.
		// Where that fails too, the next owner's recovery decides.
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

// openJournalFile opens a regular file; anything else, a pipe for instance,
// is refused without waiting for it.
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
