package syncing

import (
	"context"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// evidence is what decides which of two records is newer after the histories have diverged.
type evidence struct {
	// Records of the remote with numbers up to seen are older than the device's
	// records; an earlier version of tea has read those up to read. 0 = unknown.
	seen, read int64
}

// evidenceOf returns the evidence for a feed or table; nil if the histories have
// not diverged.
func (r *run) evidenceOf(of string) *evidence {
	if p := r.history.Divergence; p != nil {
		return &evidence{p.Seen[of], p.Read[of]}
	}
	return nil
}

// compare decides about two different records after the histories have diverged.
// known is the hash that both sides had. It does not copy an expired record.
func (s *step) compare(ctx context.Context, local, remote store.Record, known string, a Synced, past func(time.Time) bool) error {
	if local.Deleted && past(remote.Expires) || remote.Deleted && past(local.Expires) {
		return nil
	}
	switch s.r.evidence.newer(local, remote, known) {
	case Local:
		s.push(local, remote, a)
	case Remote:
		s.pull(remote, local.Seq, local.Deleted, Synced{Hash: remote.Hash, Expires: remote.Expires})
	default:
		return s.conflict(ctx, local, remote, a)
	}
	return nil
}

// newer returns which of two different records is newer, or "" if both have changed or the order is unknown. A record
// that is missing on one side is not deleted for that reason alone.
func (e *evidence) newer(local, remote store.Record, known string) Policy {
	older := remote.Seq > 0 && remote.Seq <= e.seen
	since := e.read > 0 && remote.Seq > e.read
	unchanged := local.Hash == known
	switch {
	case remote.Deleted:
		if remote.Seq == 0 || older || !since && !later(remote, local) {
			return Local
		}
	case local.Deleted:
		if !deletedHere(local, remote, known) && (local.Seq == 0 || !older && (since || !later(local, remote))) {
			return Remote
		}
		return Local
	case older, remote.Hash == known:
		return Local
	}
	switch {
	case unchanged && (since || later(remote, local)):
		return Remote
	case unchanged && later(local, remote):
		return Local
	}
	return ""
}

// deletedHere reports whether the device has deleted a record since both had it.
func deletedHere(local, remote store.Record, known string) bool {
	return known != "" && remote.Hash == known && (local.Seq > 0 || local.Feed == store.RowFeed)
}

func later(a, b store.Record) bool { return !b.Updated.IsZero() && a.Updated.After(b.Updated) }
