package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/secret"
)

// Info describes a run in a list.
type Info struct {
	ID       string `json:"id"`
	Workflow string `json:"workflow"`
	// Status is one of the Status constants, or empty if Problem is set.
	Status flow.Status `json:"status"`
	// Node is the node in the status record, or the path of the last record if
	// there is none.
	Node         string    `json:"node"`
	StartedAt    time.Time `json:"started_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	WorkflowFile string    `json:"workflow_file,omitempty"`
	// StartedBy is the origin of the run; "" if unknown.
	StartedBy string `json:"-"`
	// Digest is the digest of the workflow with which the run began.
	Digest  string `json:"-"`
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Records int    `json:"records"`
	// FailedBranches counts the branches and items of maps that failed.
	FailedBranches int `json:"-"`
	// ParentRun is the run from which this one was forked.
	ParentRun string `json:"parent_run,omitempty"`
	// Question is the first question of a waiting run. List does not set it.
	Question string `json:"question,omitempty"`
	// Input is the beginning of the input, for searches: JSON in lower case with masked
	// secrets, which can be cut off anywhere.
	Input string `json:"-"`
	// Problem says why the file cannot be read.
	Problem string `json:"problem,omitempty"`
}

// List returns the runs of the store, newest first. It reads the beginning and the end
// of files that have changed since the last time, so damage in the middle is found when
// the run is opened. A file that cannot be read is listed with its Problem.
func (s *Store) List() ([]Info, error) {
	x := NewIndex(s)
	if _, err := x.Scan(); err != nil {
		return nil, err
	}
	infos := make([]Info, len(x.list))
	for i, info := range x.list {
		infos[i] = *info
	}
	return infos, nil
}

// Info returns one run as List does. If the file cannot be opened or read, Info
// returns the error, and what is known of the run with its Problem set.
func (s *Store) Info(run string) (Info, error) {
	path, err := s.Find(run)
	if err != nil {
		return Info{}, err
	}
	return infoOf(path)
}

// infoOf describes the run in a file. ID is the path if the file is not named
// like a run's file.
func infoOf(path string) (Info, error) {
	id, isJournal := strings.CutSuffix(filepath.Base(path), journalSuffix)
	if !isJournal || checkRunID(id) != nil {
		id = path
	}
	info := Info{ID: id, Path: path}
	if err := info.load(); err != nil {
		info.Status, info.Problem = "", err.Error()
		return info, err
	}
	return info, nil
}

func (i *Info) load() error {
	f, err := openJournalFile(i.Path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	i.Size = stat.Size()
	// The times by which a damaged file is sorted.
	i.StartedAt, i.UpdatedAt = stat.ModTime(), stat.ModTime()

	head := make([]byte, min(i.Size, headSize))
	if _, err := f.ReadAt(head, 0); err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	header, last, err := readEnds(f, i.Path, i.Size, head)
	if err != nil {
		return err
	}
	i.Input = inputIn(head)
	i.Workflow, i.WorkflowFile, i.Digest, i.ParentRun, i.StartedBy = header.Workflow, header.WorkflowFile, header.Digest, header.ParentRun, header.StartedBy
	i.StartedAt, i.UpdatedAt = header.StartedAt, header.StartedAt
	if last.Seq == 0 {
		return &NoStartError{Path: i.Path}
	}
	i.Records, i.UpdatedAt, i.Node = int(last.Seq), last.Time, last.Path
	if body, ok := lastStatus(last); ok {
		i.Status, i.Node, i.FailedBranches = body.Status, cmp.Or(body.Node, i.Node), body.FailedBranches
	} else {
		i.Status = flow.Stopped
	}
	if i.Status == flow.Done {
		return nil
	}
	// A resumed run is running before it has added a record.
	_, owned, err := lockOwner(f)
	if err != nil {
		return fmt.Errorf("ask for the owner of %s: %w", i.Path, err)
	}
	if owned {
		i.Status = flow.Running
	}
	return nil
}

const (
	// headSize is the number of bytes that a list reads of the beginning of a file: enough
	// for most headers and the beginning of the input.
	headSize = 1536
	maxInput = 300
)

// inputIn returns [Info.Input] from the beginning of a file. The record with the input can
// be incomplete, so its checksum is not verified.
func inputIn(head []byte) string {
	header, state := parseFrame(head[min(len(head), preambleSize):])
	if state != frameWhole || len(head) < preambleSize+header.size+frameHeaderSize {
		return ""
	}
	record := head[preambleSize+header.size:]
	size := int64(binary.LittleEndian.Uint32(record)) + frameHeaderSize
	record = record[:min(int64(len(record)), size)]
	_, text, _ := bytes.Cut(record, []byte(`"input":`))
	var input json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&input) == nil { // complete: drop what follows
		text = input
	}
	text = secret.MaskJSON(text[:min(len(text), 2*maxInput)])
	if cut := bytes.Index(text, []byte(`\u0000s`)); cut >= 0 { // an incomplete reference to a secret
		text = text[:cut]
	}
	return strings.ToLower(strings.ToValidUTF8(string(text[:min(len(text), maxInput)]), ""))
}

// readEnds returns the header and the last record, whose Seq is 0 if there is
// none. head is the beginning of the file. If the file does not end in a complete frame,
// it is read as a whole.
func readEnds(f *os.File, path string, size int64, head []byte) (Header, Record, error) {
	version, err := parsePreamble(head, path)
	if err != nil {
		return Header{}, Record{}, err
	}
	if version == FormatVersion {
		first, state := parseFrame(head[preambleSize:])
		if state == frameWhole {
			h, err := parseHeader(first.payload)
			r, ok := readLast(f, int64(preambleSize+first.size), size)
			if err == nil && ok {
				return h, r, nil
			}
		}
	}
	c, err := readFrom(f, path)
	if err != nil {
		return Header{}, Record{}, err
	}
	if len(c.Records) == 0 {
		return c.Header, Record{}, nil
	}
	return c.Header, c.Records[len(c.Records)-1], nil
}

// readLast reads the last frame of a file, using the length in its footer. begin
// is the offset of the first record.
func readLast(f *os.File, begin, size int64) (Record, bool) {
	if size == begin {
		return Record{}, true
	}
	var footer [frameFooterSize]byte
	if _, err := f.ReadAt(footer[:], size-frameFooterSize); err != nil {
		return Record{}, false
	}
	length := int64(^binary.LittleEndian.Uint32(footer[:])) + frameOverhead
	if length > size-begin {
		return Record{}, false
	}
	buf := make([]byte, length)
	if _, err := f.ReadAt(buf, size-length); err != nil {
		return Record{}, false
	}
	last, state := parseFrame(buf)
	if state != frameWhole || int64(last.size) != length {
		return Record{}, false
	}
	r, err := parseRecord(last.payload)
	return r, err == nil
}
