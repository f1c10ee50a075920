package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// Header is the first entry of a journal and describes the run.
type Header struct {
	// Format is the file's format version; it is set on reading.
	Format       int    `json:"format"`
	RunID        string `json:"run_id"`
	Workflow     string `json:"workflow"`
	WorkflowFile string `json:"workflow_file,omitempty"`
	// Digest is the workflow's digest, to detect later changes.
	Digest string `json:"digest,omitempty"`
	// Plugins are the plugin versions at the start of the run, by name.
	Plugins   map[string]string `json:"plugins,omitempty"`
	StartedAt time.Time         `json:"started_at"`
	// StartedBy is the origin of the run; "" if unknown.
	StartedBy string `json:"started_by,omitempty"`
	// ParentRun and ParentSeq identify the origin of a fork: it shares the
	// parent's records up to and including ParentSeq.
	ParentRun string `json:"parent_run,omitempty"`
	ParentSeq uint64 `json:"parent_seq,omitempty"`
}

// Record is one entry of a journal. Body is JSON or empty.
type Record struct {
	// Seq counts from 1 without gaps; [Journal.Append] assigns it.
	Seq uint64 `json:"seq"`
	// Time is set by [Journal.Append] if it is zero.
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Path string          `json:"path,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
}

// KindStart is the kind of a journal's first record, which contains the run's
// input. [Store.Open] and [Store.Fork] refuse a journal without one.
const KindStart = "start"

// maxRecord bounds the total size of a record's kind, path and body.
const maxRecord = 1 << 30

// appendRecord encodes r: seq, time, kind and path, then the unchanged body up to
// the end, so that neither encoding nor decoding scans the body.
func appendRecord(b []byte, r Record) []byte {
	b = binary.AppendUvarint(b, r.Seq)
	b = binary.AppendVarint(b, r.Time.UnixNano())
	b = binary.AppendUvarint(b, uint64(len(r.Kind)))
	b = append(b, r.Kind...)
	b = binary.AppendUvarint(b, uint64(len(r.Path)))
	b = append(b, r.Path...)
	return append(b, r.Body...)
}

var errShortRecord = errors.New("record is shorter than its fields")

// parseRecord decodes the encoding of appendRecord. The body is a part of b.
func parseRecord(b []byte) (Record, error) {
	var r Record
	seq, n := binary.Uvarint(b)
	if n <= 0 {
		return r, errShortRecord
	}
	b = b[n:]
	nanos, n := binary.Varint(b)
	if n <= 0 {
		return r, errShortRecord
	}
	b = b[n:]
	r.Seq, r.Time = seq, time.Unix(0, nanos).UTC()
	var err error
	if r.Kind, b, err = parseString(b); err != nil {
		return r, err
	}
	if r.Path, b, err = parseString(b); err != nil {
		return r, err
	}
	if len(b) > 0 {
		r.Body = json.RawMessage(b)
	}
	return r, nil
}

func parseString(b []byte) (string, []byte, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, errShortRecord
	}
	b = b[n:]
	return string(b[:size]), b[size:], nil
}

// KindStatus is the kind of records with a run's status when its process leaves
// it. Such a record applies only while it is the last one: a run that continues
// after an interrupt and is then killed is no longer waiting.
//
// No record has the status running. A run whose last record is not a status is
// running if it has a live owner, and stopped otherwise, because it was killed.
const KindStatus = "status"

// StatusBody is the body of a [KindStatus] record.
type StatusBody struct {
	Status flow.Status `json:"status"`
	Node   string      `json:"node,omitempty"`
	// FailedBranches counts the branches and items of maps that failed.
	FailedBranches int `json:"failed_branches,omitempty"`
}

// lastStatus decodes the last record of a run; ok is false if it is not a status
// record.
func lastStatus(r Record) (body StatusBody, ok bool) {
	if r.Kind != KindStatus || json.Unmarshal(r.Body, &body) != nil || !isStatus(body.Status) {
		return StatusBody{}, false
	}
	return body, true
}

// isStatus reports whether a status record can have a status.
func isStatus(status flow.Status) bool {
	switch status {
	case flow.Waiting, flow.Failed, flow.Stopped, flow.Done:
		return true
	}
	return false
}
