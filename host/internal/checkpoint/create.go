package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// createJournalFile creates the file of a new run with the frames of its first
// records. The file gets its name only when it is complete and on disk: a crash
// leaves nothing but a temporary file, which [Store.GC] removes. The caller owns
// the run's lock until it closes the file.
func createJournalFile(path string, h Header, records []byte) (_ *writer, err error) {
	temp := tempPath(path)
	// The temporary file of a crashed creation is reused; the lock excludes a
	// second creator.
	f, err := openFile(temp, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create checkpoint: %w", err)
	}
	if err := claim(f, temp, path); err != nil {
		_ = releaseFile(f)
		return nil, fmt.Errorf("create checkpoint: %w", err)
	}
	w := &writer{f: journalFile{f, path}, path: path}
	defer func() {
		if err != nil {
			os.Remove(temp)
			_ = releaseFile(f)
		}
	}()
	// Checked under the lock of the temporary file: two creators of one run
	// cannot both succeed.
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("create checkpoint: %w", &os.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	if err := w.begin(h, records); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, fmt.Errorf("create checkpoint: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		os.Remove(path)
		return nil, fmt.Errorf("create checkpoint: %w", err)
	}
	return w, nil
}

// claim makes the caller the owner of the temporary file of the run at path and
// truncates it.
func claim(f *os.File, temp, path string) error {
	if err := lockFile(f, path); err != nil {
		return err
	}
	if err := checkNotRemoved(f, temp); err != nil {
		return err
	}
	return f.Truncate(0)
}

// begin writes the preamble, the header and the frames of the first records to
// an empty file and makes them durable.
func (w *writer) begin(h Header, records []byte) error {
	h.Format = FormatVersion
	header, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("create checkpoint: encode header: %w", err)
	}
	start := preamble(FormatVersion)
	if _, err := w.f.WriteAt(start, 0); err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	w.size = int64(len(start))
	if err := w.write(appendFrame(nil, func(b []byte) []byte { return append(b, header...) })); err != nil {
		return err
	}
	// Everything is on disk before the file gets its name, so readers of the
	// records can rely on the header.
	w.durable = w.size
	if err := w.write(records); err != nil {
		return err
	}
	w.durable = 0
	return w.sync()
}

// tempPath is the temporary name of the file at path. [Store.List] ignores it.
func tempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempSuffix)
}

// makeDir creates a directory of mode 0700 and its missing parents, and makes
// their names durable: a journal is only as safe as its path.
func makeDir(dir string) error {
	missing := []string{}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range missing {
		if err := atomicfile.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}
