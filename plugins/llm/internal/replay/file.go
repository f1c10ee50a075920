package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// File is a recording on disk. It is read on first use and is safe for concurrent use.
// Other processes can add to it at the same time.
type File struct {
	path string

	mu      sync.Mutex
	records map[string]*Record // nil until read
}

// Open returns the recording at a path. The file need not exist yet.
func Open(path string) *File { return &File{path: path} }

// find returns the latest recording with a hash; nil if there is none.
func (f *File) find(hash string) (*Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records == nil {
		records, err := load(f.path)
		if err != nil {
			return nil, err
		}
		f.records = records
	}
	return f.records[hash], nil
}

// howToRecord is the hint for a missing recording.
const howToRecord = "record it by running once with settings.llm.replay.record: true and replay.provider set to the real provider"

// missing is the error for a request without a recording.
func (f *File) missing(hash string) error {
	return tea.Errorf(tea.NotFound, "%s has no recording of this request (hash %s, %d recorded); %s", f.path, hash[:12], len(f.records), howToRecord)
}

// add appends a recording in one write, so that a crash leaves at most a torn last
// line.
func (f *File) add(rec *Record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return tea.Errorf(tea.InternalError, "encode a recording: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := appendLine(f.path, line); err != nil {
		return tea.Errorf(tea.ValidationError, "write settings.llm.replay.file: %w", err)
	}
	if f.records != nil {
		f.records[rec.Hash] = rec
	}
	return nil
}

// appendLine adds a line, and replaces a last line that a crash has torn. Only the
// owner may read the file: it contains prompts.
func appendLine(path string, line []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	if err := filelock.Lock(file); err != nil {
		return err
	}
	end, err := wholeLines(file)
	if err != nil {
		return err
	}
	if err := file.Truncate(end); err != nil {
		return err
	}
	_, err = file.WriteAt(append(line, '\n'), end)
	return err
}

// wholeLines returns the length of a file without its torn last line.
func wholeLines(file *os.File) (int64, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(block)))
		part := block[:end-start]
		if _, err := file.ReadAt(part, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// load reads a recording. The last answer to a request takes precedence. A torn last
// line is skipped; any other broken line is an error.
func load(path string) (map[string]*Record, error) {
	records := map[string]*Record{}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		absolute, _ := filepath.Abs(path)
		return nil, tea.Errorf(tea.NotFound, "settings.llm.replay.file %s not found; %s", absolute, howToRecord)
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "read settings.llm.replay.file: %w", err)
	}
	defer file.Close()
	in := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, readErr := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			rec := new(Record)
			switch err := decode(line, rec); {
			case err == nil && rec.Hash != "":
				records[rec.Hash] = rec
			case readErr == nil:
				return nil, tea.Errorf(tea.ValidationError, "%s:%d: not a recording", path, number)
			}
		}
		if readErr == io.EOF {
			return records, nil
		}
		if readErr != nil {
			return nil, tea.Errorf(tea.ValidationError, "read settings.llm.replay.file: %w", readErr)
		}
	}
}

// decode reads a record. Integers in its details stay exact.
func decode(line []byte, rec *Record) error {
	v, err := value.Decode(line)
	if err != nil {
		return err
	}
	return value.Into(v, rec)
}
