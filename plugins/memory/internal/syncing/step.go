package syncing

import (
	"context"
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// step is what is written for some records.
type step struct {
	r *run
	// toLocal and toRemote are the writes. After one, the side's record is what
	// the other side has.
	toLocal, toRemote []store.RecordWrite
	bases             []agreed // after the writes of toLocal
	before            []agreed // before the writes of toRemote
	settled           []settled
	again             []store.RecordName
	bytes             int64
}

// settled is a record that needs no write.
type settled struct {
	name store.RecordName
	agreed
}

// decide compares the two records with the base.
func (s *step) decide(ctx context.Context, local, remote store.Record, a agreed) error {
	if local.Damaged || remote.Damaged {
		s.r.Damaged++
		return nil
	}
	stored, known := a, a.hash
	if a.pending != "" && (remote.Hash == a.pending || a.pending == absent && remote.Deleted) {
		known = remote.Hash // an earlier run has written it
	}
	a.hash, a.pending = known, "" // what a failed write goes back to
	now := s.r.Now()
	past := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	switch {
	case local.Hash == remote.Hash:
		if stored != (agreed{hash: local.Hash, expires: a.expires}) {
			s.settled = append(s.settled, settled{local.RecordName, agreed{hash: local.Hash, expires: local.Expires}})
		}
	case past(a.expires) && (local.Deleted && remote.Hash == known || remote.Deleted && local.Hash == known):
		// It expired and one side has removed it. That is not a deletion.
		s.settled = append(s.settled, settled{name: local.RecordName})
	case local.Hash == known && !(local.Deleted && past(remote.Expires)):
		s.pull(remote, local.Seq, local.Deleted, agreed{hash: remote.Hash, expires: remote.Expires})
	case local.Hash == known:
	case remote.Hash == known && !(remote.Deleted && past(local.Expires)):
		s.push(local, remote, a)
	case remote.Hash == known:
	default:
		return s.conflict(ctx, local, remote, a)
	}
	return nil
}

// pull replaces the local record, which must still have a number.
func (s *step) pull(record store.Record, seq int64, absent bool, a agreed) {
	if absent {
		seq = 0
	}
	s.toLocal = append(s.toLocal, store.RecordWrite{Record: record, If: seq, Open: contentOf(s.r.Remote, record)})
	s.bases = append(s.bases, a)
}

// push replaces the remote record.
func (s *step) push(local, remote store.Record, a agreed) {
	seq := remote.Seq
	if remote.Deleted {
		seq = 0
	}
	s.toRemote = append(s.toRemote, store.RecordWrite{Record: local, If: seq, Open: contentOf(s.r.Local, local)})
	s.before = append(s.before, a)
}

func (s *step) conflict(ctx context.Context, local, remote store.Record, a agreed) error {
	winner := string(s.r.Policy)
	if s.r.Policy == LastWrite {
		winner = string(Remote)
		if local.Updated.After(remote.Updated) || local.Updated.Equal(remote.Updated) && local.Hash > remote.Hash {
			winner = string(Local)
		}
	}
	switch Policy(winner) {
	case Local:
		s.push(local, remote, a)
	case Remote:
		s.pull(remote, local.Seq, local.Deleted, agreed{hash: remote.Hash, expires: remote.Expires})
	case Merge:
		merged, err := s.r.Merge(ctx, local, remote)
		if err != nil {
			return fmt.Errorf("merge %q of %s: %w", local.Key, local.Space, err)
		}
		// The device gets it with the remote's record as base, so it is pushed next.
		s.pull(merged, local.Seq, local.Deleted, agreed{hash: remote.Hash, expires: remote.Expires})
		s.again = append(s.again, local.RecordName)
	}
	s.r.Conflicts++
	if len(s.r.Resolved) < maxListed {
		s.r.Resolved = append(s.r.Resolved, Conflict{local.RecordName, winner})
	}
	return nil
}

// writeRemote writes to the remote, between two transactions of the base.
func (s *step) writeRemote(ctx context.Context) error {
	if len(s.toRemote) == 0 {
		return nil
	}
	err := s.r.base.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		for i, w := range s.toRemote {
			pending := w.Hash
			if w.Deleted {
				pending = absent
			}
			if err := s.r.base.set(ctx, tx, w.RecordName, agreed{s.before[i].hash, pending, s.before[i].expires}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	results, err := s.r.Remote.Put(ctx, s.toRemote...)
	if err != nil {
		return err
	}
	for i, w := range s.toRemote {
		switch {
		case results[i].Err != nil:
			s.r.refuse("remote", w, results[i].Err)
			s.settled = append(s.settled, settled{w.RecordName, s.before[i]})
		case results[i].Conflict:
			// It was not written; a record with the pending hash would be another's.
			s.settled = append(s.settled, settled{w.RecordName, s.before[i]})
			s.again = append(s.again, w.RecordName)
		default:
			s.settled = append(s.settled, settled{w.RecordName, agreed{hash: w.Hash, expires: w.Expires}})
			s.bytes += int64(len(w.Body))
			if w.Deleted {
				s.r.DeletedThere++
			} else {
				s.r.Pushed++
			}
		}
	}
	return nil
}

// writeLocal writes to the device, and the base with it.
func (s *step) writeLocal(ctx context.Context) error {
	if len(s.toLocal) == 0 && len(s.settled) == 0 {
		return nil
	}
	results, err := s.r.Local.PutWith(ctx, s.toLocal, func(ctx context.Context, tx store.Tx, results []store.PutResult) error {
		for i, w := range s.toLocal {
			if results[i].Err != nil || results[i].Conflict {
				continue
			}
			if err := s.r.base.set(ctx, tx, w.RecordName, s.bases[i]); err != nil {
				return err
			}
		}
		for _, done := range s.settled {
			if err := s.r.base.set(ctx, tx, done.name, done.agreed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, w := range s.toLocal {
		switch {
		case results[i].Err != nil:
			s.r.refuse("device", w, results[i].Err)
		case results[i].Conflict:
			s.again = append(s.again, w.RecordName)
		case w.Deleted:
			s.r.DeletedLocally++
		default:
			s.r.Pulled++
			s.bytes += int64(len(w.Body))
		}
	}
	return nil
}

func (r *run) refuse(side string, w store.RecordWrite, err error) {
	if len(r.Refused) < maxListed {
		r.Refused = append(r.Refused, fmt.Sprintf("%s %q %q is not stored on the %s: %v", w.Feed, w.Space, w.Key, side, err))
	}
}
