package checkpoint

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/host/flow"
)

// KindStatus is the kind of the records with a run's status when its process
// leaves it. Such a record counts as long as none follows it: a run that goes on
// after an interrupt and is killed then is no longer waiting.
//
// No record has the status running. It is that of a run without a last status
// whose owner lives; without an owner the status is stopped, for it was killed.
const KindStatus = "status"

// StatusBody is the body of a [KindStatus] record.
type StatusBody struct {
	Status flow.Status `json:"status"`
	Node   string      `json:"node,omitempty"`
	// FailedBranches counts the branches and items of maps that failed.
	FailedBranches int `json:"failed_branches,omitempty"`
}

// NewStatusRecord returns a record of the run's status at a node.
func NewStatusRecord(status flow.Status, node string) Record {
	body, _ := json.Marshal(StatusBody{Status: status, Node: node}) // two strings always encode
	return Record{Kind: KindStatus, Path: node, Body: body}
}

// lastStatus reads the last record of a run; ok is false where it is not
// a status record.
func lastStatus(r Record) (body StatusBody, ok bool) {
	if r.Kind != KindStatus || json.Unmarshal(r.Body, &body) != nil || !isStatus(body.Status) {
		return StatusBody{}, false
	}
	return body, true
}

// isStatus reports whether a status record may hold it.
func isStatus(status flow.Status) bool {
	switch status {
	case flow.Waiting, flow.Failed, flow.Stopped, flow.Done:
		return true
	}
	return false
}
