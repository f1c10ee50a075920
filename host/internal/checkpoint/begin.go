package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// begin writes the preamble, the header and the first records to an empty
// file and makes them durable.
func (w *writer) begin(h Header, records []Record) error {
	h.Format = FormatVersion
	header, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("create checkpoint: encode header: %w", err)
	}
	frames := appendFrame(nil, func(b []byte) []byte { return append(b, header...) })
	for _, r := range records {
		frames = appendFrame(frames, func(b []byte) []byte { return appendRecord(b, r) })
	}
	start := preamble(FormatVersion)
	if _, err := w.f.WriteAt(start, 0); err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	w.size = int64(len(start))
	if err := w.write(frames); err != nil {
		return err
	}
	return w.sync()
}

// tempPath is where the file at path is prepared. [Store.List] does not see it.
func tempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempSuffix)
}

// syncParentDir makes the name of the file at path durable.
func syncParentDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
