package syncing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Policy decides about a record that changed on both sides.
type Policy string

// The policies.
const (
	// LastWrite keeps the later change by the clocks of the sides; for equal times,
	// the change with the larger hash.
	LastWrite Policy = "last_write"
	Remote    Policy = "remote"
	Local     Policy = "local"
	// Merge calls Options.Merge.
	Merge Policy = "merge"
)

// Device is the memory of the device.
type Device interface {
	store.Replica
	// Base returns the base, which is in the same database.
	Base() Base
	// PutWith is Put, and writes the agreements that also returns in the same
	// transaction. also can be called more than once, and can be nil.
	PutWith(ctx context.Context, writes []store.RecordWrite, also func(results []store.PutResult) []SyncedRecord) ([]store.PutResult, error)
}

// Options configure a Run. Local, Remote and Policy are needed.
type Options struct {
	Local  Device
	Remote store.Replica
	Policy Policy
	// LocalTables and RemoteTables are the tables of data.*; nil = there are none.
	LocalTables  DeviceTables
	RemoteTables Tables
	// Merge returns the record that replaces both, for the policy Merge.
	Merge func(ctx context.Context, local, remote store.Record) (store.Record, error)
	// Wait is called after each transfer, to limit the bandwidth; nil = no limit.
	Wait func(ctx context.Context, bytes int64) error
	// Now is the clock for expiry.
	Now func() time.Time
}

// Result is the result of a Run.
type Result struct {
	Pulled, Pushed               int64
	DeletedLocally, DeletedThere int64
	Conflicts                    int64
	// Resolved describes the first conflicts, at most maxListed.
	Resolved []Conflict
	// Refused are the reasons why records were not written, at most maxListed.
	Refused []string
	// Damaged is the number of records that could not be read.
	Damaged int64
	// Full reports whether all records were compared, because one side no longer had
	// all deletions or the histories have diverged.
	Full bool
	// Restored is This or Other if that side is an older copy of itself, otherwise "".
	Restored string
	// SkippedTables are the names of tables whose rows are not synchronised.
	SkippedTables []string
	Bytes         int64
}

// The values of Result.Restored.
const (
	This  = "this"
	Other = "other"
)

// Conflict is a record that changed on both sides. Winner is local, remote or merge.
type Conflict struct {
	store.RecordName
	Winner string `json:"winner"`
}

const (
	pageRecords  = 500
	firstRecords = 64 // until record sizes are known
	pageBytes    = 4 << 20
	maxListed    = 100
	// maxTries bounds how often records that others change meanwhile are compared again.
	maxTries = 20
)

// Run synchronises all records in both directions. The next run continues an
// interrupted one.
func Run(ctx context.Context, o Options) (Result, error) {
	identity, err := o.Remote.Identity(ctx)
	if err != nil {
		return Result{}, err
	}
	own, err := o.Local.Identity(ctx)
	if err != nil {
		return Result{}, err
	}
	if own == identity {
		return Result{}, tea.Errorf(tea.ValidationError, "the memory cannot be synchronised with itself or a copy of its folder")
	}
	r := &run{Options: o, base: base{o.Local.Base(), identity}, local: o.Local, remote: o.Remote, atOnce: firstRecords, refused: map[store.RecordName]bool{}, compared: map[string]bool{}}
	if err := r.verify(ctx); err != nil {
		return r.Result, fmt.Errorf("compare the histories: %w", err)
	}
	err = r.all(ctx)
	if errors.Is(err, store.ErrUnknownChange) {
		// Changes are missing in the feed, but the records themselves can be compared.
		if err = r.part(ctx, divergence{}); err == nil {
			err = r.all(ctx)
		}
	}
	if err != nil {
		return r.Result, err
	}
	return r.Result, r.finishComparison(ctx)
}

func (r *run) all(ctx context.Context) error {
	for _, feed := range store.Feeds() {
		if err := r.feed(ctx, feed); err != nil {
			return fmt.Errorf("synchronise %s: %w", feed, err)
		}
	}
	if err := r.tables(ctx); err != nil {
		return fmt.Errorf("synchronise tables: %w", err)
	}
	return nil
}

type run struct {
	Options
	Result
	base base
	// atOnce is how many records are compared together.
	atOnce int
	// local and remote are the records that are compared.
	local  localRecords
	remote remoteRecords
	// refused are the refused records; a record can be in the feeds of both sides.
	refused map[store.RecordName]bool

	history  *history
	markSeq  int64           // the number of the document with the marks
	unmarked bool            // the remote was read since the last mark
	unsaved  bool            // the history has changed since it was saved
	evidence *evidence       // of the feed or table; nil if the histories have not diverged
	compared map[string]bool // the tables that were compared in full
}

func (r *run) feed(ctx context.Context, feed store.Feed) error {
	n, err := r.begin(ctx, feed)
	if err != nil {
		return err
	}
	r.evidence = r.evidenceOf(string(feed))
	known, _, err := r.base.after(ctx, "", 1, string(feed))
	if err != nil {
		return err
	}
	full := false
	compare := func() error {
		if full {
			return nil
		}
		full, r.Full = true, true
		return r.deletions(ctx, string(feed))
	}
	// A feed that is read from its beginning lacks deletions that were removed. The records of the base are therefore
	// compared before the read positions are stored: a later run would not do it.
	if len(known) > 0 && (n.Local == 0 || n.Remote == 0) {
		if err := compare(); err != nil {
			return err
		}
	}
	local, remote := &reading{Replica: r.Local, saved: &n.Local, after: n.Local}, &reading{Replica: r.Remote, saved: &n.Remote, after: n.Remote}
	local.fromStart, remote.fromStart = n.Local == 0, n.Remote == 0
	// The remote is read twice, for the numbers of the records written to it.
	for _, side := range []*reading{remote, local, remote} {
		for more := true; more; {
			page, err := side.Changes(ctx, store.ChangeQuery{Feed: feed, After: side.after, FromStart: side.fromStart, Limit: pageRecords, MaxBytes: pageBytes})
			if errors.Is(err, store.ErrTooOld) && !errors.Is(err, store.ErrUnknownChange) {
				if err := compare(); err != nil {
					return err
				}
				*side.saved, side.after, side.fromStart = 0, 0, true
				continue
			}
			if err != nil {
				return err
			}
			side.after, more = page.Last, page.More
			records := slices.DeleteFunc(page.Records, func(record store.Record) bool { return isMark(record.RecordName) })
			if side == remote {
				if len(records) == 0 {
					continue // a change that is not a record, such as the mark of a device, needs no new mark
				}
				r.unmarked = true
			}
			if err := r.page(ctx, records); err != nil {
				return err
			}
			if side == remote {
				if err := r.note(ctx, string(feed), side.after); err != nil {
					return err
				}
			}
			*side.saved = side.after
			if err := r.base.setNumbers(ctx, n, string(feed)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading is the read position in the feed of a side, and the position that was saved.
type reading struct {
	store.Replica
	saved     *int64
	after     int64
	fromStart bool
}

// page reconciles the records of a page of one side that differ from the base.
func (r *run) page(ctx context.Context, records []store.Record) error {
	names := make([]store.RecordName, len(records))
	for i, record := range records {
		names[i] = record.RecordName
	}
	known, err := r.base.read(ctx, names)
	if err != nil {
		return err
	}
	var changed []store.RecordName
	seen := map[store.RecordName]bool{}
	for _, record := range records {
		a := known[record.RecordName]
		if record.Hash == a.Hash && a.Pending == "" && !record.Deleted || seen[record.RecordName] || r.refused[record.RecordName] {
			continue
		}
		seen[record.RecordName] = true
		changed = append(changed, record.RecordName)
	}
	return r.reconcile(ctx, changed)
}

// deletions compares the records of the base, including those that one side has deleted since.
func (r *run) deletions(ctx context.Context, of ...string) error {
	for last := ""; ; {
		names, next, err := r.base.after(ctx, last, pageRecords, of...)
		if err != nil || len(names) == 0 {
			return err
		}
		if err := r.reconcile(ctx, names); err != nil {
			return err
		}
		last = next
	}
}

// reconcile makes records equal on both sides. Sizes are unknown before records are read, so it assumes that the next
// records are as large as the last ones to fill a page.
func (r *run) reconcile(ctx context.Context, names []store.RecordName) error {
	for len(names) > 0 {
		n := min(len(names), r.atOnce)
		size, err := r.reconcileSome(ctx, names[:n])
		if err != nil {
			return err
		}
		names = names[n:]
		fit := int64(n) * pageBytes / max(size, 1)
		r.atOnce = int(max(1, min(pageRecords, fit, int64(max(r.atOnce, 2*n)))))
	}
	return nil
}

// reconcileSome compares records that are read together, and repeats the comparison
// of records that others change meanwhile. It returns the size of the bodies on both
// sides.
func (r *run) reconcileSome(ctx context.Context, names []store.RecordName) (size int64, err error) {
	for range maxTries {
		if len(names) == 0 {
			return size, nil
		}
		local, err := r.local.Records(ctx, names...)
		if err != nil {
			return size, err
		}
		remote, err := r.remote.Records(ctx, names...)
		if err != nil {
			return size, err
		}
		r.unmarked = true
		for i := range names {
			size += int64(len(local[i].Body) + len(remote[i].Body))
		}
		known, err := r.base.read(ctx, names)
		if err != nil {
			return size, err
		}
		s := &step{r: r, merged: map[store.RecordName]bool{}}
		for i, name := range names {
			if err := s.decide(ctx, local[i], remote[i], known[name]); err != nil {
				return size, err
			}
		}
		if err := s.writeRemote(ctx); err != nil {
			return size, err
		}
		if err := s.writeLocal(ctx); err != nil {
			return size, err
		}
		r.Bytes += s.bytes
		if r.Wait != nil && s.bytes > 0 {
			if err := r.Wait(ctx, s.bytes); err != nil {
				return size, err
			}
		}
		names = distinct(s.again)
	}
	return size, tea.Errorf(tea.ConnectionError, "other writers changed the same records during each attempt; synchronise again later")
}

func distinct(names []store.RecordName) []store.RecordName {
	seen := make(map[store.RecordName]bool, len(names))
	return slices.DeleteFunc(names, func(name store.RecordName) bool {
		twice := seen[name]
		seen[name] = true
		return twice
	})
}

// contentOf returns a function that opens the content of a record, nil if it has
// none.
func contentOf(from store.Replica, record store.Record) func(context.Context) (io.ReadCloser, error) {
	if record.Content == "" {
		return nil
	}
	return func(ctx context.Context) (io.ReadCloser, error) { return from.Content(ctx, record.Content) }
}
