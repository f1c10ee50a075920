package syncing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// step is the set of writes for some records.
type step struct {
	r *run
	// toLocal and toRemote are the writes. After a write, the record is equal on
	// both sides.
	toLocal, toRemote []store.RecordWrite
	bases             []Synced // after the writes of toLocal
	before            []Synced // before the writes of toRemote
	settled           []settled
	merged            map[store.RecordName]bool // the merged records of toLocal, which are pushed next
	again             []store.RecordName
	bytes             int64
}

// settled is a record that needs no write.
type settled struct {
	name store.RecordName
	Synced
}

// decide compares the two records with the base.
func (s *step) decide(ctx context.Context, local, remote store.Record, a Synced) error {
	if local.Damaged || remote.Damaged {
		s.r.Damaged++
		return nil
	}
	stored, known := a, a.Hash
	if a.Pending != "" && (remote.Hash == a.Pending || a.Pending == absent && remote.Deleted) {
		known = remote.Hash // an earlier run has written it
	}
	a.Hash, a.Pending = known, "" // restored if a write fails
	now := s.r.Now()
	past := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	switch {
	case local.Hash == remote.Hash:
		if stored != (Synced{Hash: local.Hash, Expires: a.Expires}) {
			s.settled = append(s.settled, settled{local.RecordName, Synced{Hash: local.Hash, Expires: local.Expires}})
		}
	case past(a.Expires) && (local.Deleted && remote.Hash == known || remote.Deleted && local.Hash == known):
		// One side has swept the expired record, which is not a deletion.
		s.settled = append(s.settled, settled{name: local.RecordName})
	case s.r.evidence != nil:
		return s.compare(ctx, local, remote, known, a, past)
	case local.Hash == known && !(local.Deleted && past(remote.Expires)):
		s.pull(remote, local.Seq, local.Deleted, Synced{Hash: remote.Hash, Expires: remote.Expires})
	case local.Hash == known:
	case remote.Hash == known && !(remote.Deleted && past(local.Expires)):
		s.push(local, remote, a)
	case remote.Hash == known:
	default:
		return s.conflict(ctx, local, remote, a)
	}
	return nil
}

// pull replaces the local record, if it still has the number.
func (s *step) pull(record store.Record, seq int64, absent bool, a Synced) {
	if absent {
		seq = 0
	}
	s.toLocal = append(s.toLocal, store.RecordWrite{Record: record, If: seq, Open: contentOf(s.r.Remote, record)})
	s.bases = append(s.bases, a)
}

// push replaces the remote record.
func (s *step) push(local, remote store.Record, a Synced) {
	seq := remote.Seq
	if remote.Deleted {
		seq = 0
	}
	s.toRemote = append(s.toRemote, store.RecordWrite{Record: local, If: seq, Open: contentOf(s.r.Local, local)})
	s.before = append(s.before, a)
}

func (s *step) conflict(ctx context.Context, local, remote store.Record, a Synced) error {
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
		s.pull(remote, local.Seq, local.Deleted, Synced{Hash: remote.Hash, Expires: remote.Expires})
	case Merge:
		merged, err := s.r.Merge(ctx, local, remote)
		if err != nil {
			return fmt.Errorf("merge %q of %s: %w", local.Key, local.Space, err)
		}
		// With the remote's record as its base, the merged record is pushed next.
		s.pull(merged, local.Seq, local.Deleted, Synced{Hash: remote.Hash, Expires: remote.Expires})
		s.merged[local.RecordName] = true
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
	pending := make([]SyncedRecord, 0, len(s.toRemote)+1)
	for i, w := range s.toRemote {
		one := s.r.base.syncedRecord(w.RecordName, s.before[i])
		if one.Pending = w.Hash; w.Deleted {
			one.Pending = absent
		}
		pending = append(pending, one)
	}
	writes := s.toRemote
	_, isRows := s.r.remote.(rows[Tables])
	together := !isRows // the mark is a record
	if together {
		writes = append(slices.Clip(writes), s.r.nextMark())
		pending = append(pending, s.r.encodeHistory())
	}
	if err := s.r.base.SetSynced(ctx, pending...); err != nil {
		return err
	}
	results, err := Put(ctx, s.r.remote, writes)
	if err != nil {
		return err
	}
	if together {
		err = s.r.marked(results[len(results)-1])
	} else {
		err = s.r.mark(ctx)
	}
	if err != nil {
		return err
	}
	for i, w := range s.toRemote {
		switch {
		case results[i].Err != nil:
			s.r.refuse("remote", w, results[i].Err)
			s.settled = append(s.settled, settled{w.RecordName, s.before[i]})
		case results[i].Conflict:
			// It was not written, so a record with the pending hash would be from another writer.
			s.settled = append(s.settled, settled{w.RecordName, s.before[i]})
			s.again = append(s.again, w.RecordName)
		default:
			s.settled = append(s.settled, settled{w.RecordName, Synced{Hash: w.Hash, Expires: w.Expires}})
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

// Put writes records. If a record is too large for the store, Put finds it by
// bisection, refuses it and writes the others.
func Put(ctx context.Context, to interface {
	Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error)
}, writes []store.RecordWrite,
) ([]store.PutResult, error) {
	results, err := to.Put(ctx, writes...)
	if !errors.Is(err, store.ErrTooLarge) {
		return results, err
	}
	if len(writes) == 1 {
		return []store.PutResult{{Err: err}}, nil
	}
	half := len(writes) / 2
	if results, err = Put(ctx, to, writes[:half]); err != nil {
		return nil, err
	}
	further, err := Put(ctx, to, writes[half:])
	return append(results, further...), err
}

// writeLocal writes to the device, together with the base.
func (s *step) writeLocal(ctx context.Context) error {
	if len(s.toLocal) == 0 && len(s.settled) == 0 {
		return nil
	}
	if s.r.unmarked {
		if err := s.r.mark(ctx); err != nil {
			return err
		}
	}
	results, err := s.r.local.PutWith(ctx, s.toLocal, func(results []store.PutResult) (all []SyncedRecord) {
		if s.r.unsaved {
			all = append(all, s.r.encodeHistory())
		}
		for i, w := range s.toLocal {
			if results[i].Err == nil && !results[i].Conflict {
				all = append(all, s.r.base.syncedRecord(w.RecordName, s.bases[i]))
			}
		}
		for _, done := range s.settled {
			all = append(all, s.r.base.syncedRecord(done.name, done.Synced))
		}
		return all
	})
	if err != nil {
		return err
	}
	s.r.unsaved = false
	for i, w := range s.toLocal {
		if results[i].Err == nil && s.merged[w.RecordName] {
			s.again = append(s.again, w.RecordName)
		}
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
	r.refused[w.RecordName] = true
	if len(r.Refused) < maxListed {
		r.Refused = append(r.Refused, fmt.Sprintf("%s %q %q is not stored on the %s: %v", w.Feed, w.Space, w.Key, side, err))
	}
}
