package documents

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// times are the timestamps of documents that have them.
type times struct {
	Created clock.Instant `json:"created_at"`
	Updated clock.Instant `json:"updated_at"`
}

// ToRecord returns the record of a document.
func ToRecord(d store.Document) store.Record {
	r := store.Record{RecordName: store.RecordName{Feed: store.DocumentFeed, Space: d.Kind, Key: d.ID}, Seq: d.Seq}
	hash, err := store.DocumentHash(d.Body)
	if err != nil {
		r.Damaged = true
		return r
	}
	r.Hash, r.Body = hash, d.Body
	var t times
	if json.Unmarshal(d.Body, &t) == nil { // not all documents have timestamps
		r.Created, r.Updated = t.Created.Time, t.Updated.Time
	}
	return r
}
