package syncing

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"math/bits"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// MarkKind is the kind of the documents that devices write to a remote to
// recognize an older copy of it. They are not records of a feed.
const MarkKind = "tea_sync"

func isMark(name store.RecordName) bool {
	return name.Feed == store.DocumentFeed && name.Space == MarkKind
}

// mark is a point in the history that a device and a remote have in common. Its token is stored at the remote in a
// document, so it shows the age of a copy of the remote.
type mark struct {
	Number int64  `json:"number"`
	Token  string `json:"token"`
	// Seen has the number of the remote's last change that the device knew, by feed or table. It lists only
	// numbers that increased since the previous mark.
	Seen map[string]int64 `json:"seen,omitempty"`
}

// history is the device's state of its marks at a remote. Before the device stores anything that it saw or wrote there,
// it writes a later mark to the remote. So a remote that has the last mark also has everything that the device has seen
// there.
type history struct {
	// Name is the name of the document at the remote.
	Name  string `json:"name"`
	Marks []mark `json:"marks"` // the oldest first; see add
	// Next is the token that is being written; "" = none.
	Next       string      `json:"next,omitempty"`
	Divergence *divergence `json:"parted,omitempty"`
}

// divergence is the state of a comparison of all records, which is needed if the remote does not continue the known
// history.
type divergence struct {
	// Older reports whether the remote is an older copy. Otherwise its state is
	// unknown, because an earlier version synchronised the device.
	Older bool `json:"older"`
	// Seen has the numbers of the remote's last changes that are older than the
	// device's.
	Seen map[string]int64 `json:"seen,omitempty"`
	// Read has the numbers of the last changes that an earlier version of tea has read from the remote.
	Read map[string]int64 `json:"read,omitempty"`
	// Begun lists the feeds whose numbers are no longer valid.
	Begun []store.Feed `json:"begun,omitempty"`
}

func newHistory() *history { return &history{Name: rand.Text()} }

func (h *history) last() string {
	if len(h.Marks) == 0 {
		return ""
	}
	return h.Marks[len(h.Marks)-1].Token
}

// keptMarks is the number of recent marks that are all kept. Marks whose numbers are divisible by 2, 4, 8 and so on
// are kept 2, 4, 8 times as long.
const keptMarks = 8

// add adds the mark with the written token.
func (h *history) add() {
	next := mark{Number: 1, Token: h.Next}
	if len(h.Marks) > 0 {
		next.Number = h.Marks[len(h.Marks)-1].Number + 1
	}
	h.Next = ""
	var kept []mark
	var removed map[string]int64
	for _, m := range append(slices.Clone(h.Marks), next) {
		if removed != nil {
			maps.Copy(removed, m.Seen)
			m.Seen, removed = removed, nil
		}
		if next.Number-m.Number < keptMarks<<bits.TrailingZeros64(uint64(m.Number)) {
			kept = append(kept, m)
		} else if removed = maps.Clone(m.Seen); removed == nil {
			removed = map[string]int64{}
		}
	}
	h.Marks = kept
}

// see stores that the device has read a feed or table up to a number.
func (h *history) see(of string, number int64) {
	last := &h.Marks[len(h.Marks)-1]
	seen := maps.Clone(last.Seen)
	if seen == nil {
		seen = map[string]int64{}
	}
	seen[of] = number
	last.Seen = seen
}

// seen returns the numbers that the device had seen at the last mark with one of the tokens, and whether there is such
// a mark.
func (h *history) seen(tokens []string) (seen map[string]int64, there bool) {
	all := map[string]int64{}
	for _, m := range h.Marks {
		maps.Copy(all, m.Seen)
		if slices.Contains(tokens, m.Token) {
			seen, there = maps.Clone(all), true
		}
	}
	return seen, there
}

type document struct {
	Marks []mark `json:"marks"` // without Seen
}

func (d document) tokens() []string {
	all := make([]string, len(d.Marks))
	for i, m := range d.Marks {
		all[i] = m.Token
	}
	return all
}

func (h *history) record() store.RecordName {
	return store.RecordName{Feed: store.DocumentFeed, Space: MarkKind, Key: h.Name}
}

// verify compares the last mark at the remote with the device's last mark.
func (r *run) verify(ctx context.Context) error {
	known, err := r.base.history(ctx)
	if err != nil {
		return err
	}
	if known == nil {
		r.history = newHistory()
		read, before, err := r.base.synchronised(ctx)
		if before && err == nil {
			err = r.part(ctx, divergence{Read: read})
		}
		return err
	}
	r.history = known
	r.restored()
	found, err := r.Remote.Records(ctx, known.record())
	if err != nil {
		return err
	}
	var there document
	if !found[0].Deleted && json.Unmarshal(found[0].Body, &there) != nil {
		there = document{} // damaged
	}
	tokens := there.tokens()
	newest := ""
	if len(tokens) > 0 {
		newest = tokens[len(tokens)-1]
	}
	if !found[0].Deleted {
		r.markSeq = found[0].Seq
	}
	switch {
	case newest == known.last():
		return nil
	case known.Next != "" && newest == known.Next:
		r.history.add()
		r.unsaved = true
		return r.save(ctx)
	case known.last() != "" && slices.Contains(tokens, known.last()):
		return r.rename(ctx)
	}
	seen, _ := known.seen(tokens)
	return r.part(ctx, divergence{Older: true, Seen: seen})
}

// rename starts another document at a remote that continues the history of the
// device: the device is an older copy of itself, or a copy of it synchronises
// too.
func (r *run) rename(ctx context.Context) error {
	seen, _ := r.history.seen([]string{r.history.last()})
	before := r.history
	r.history, r.markSeq = newHistory(), 0
	r.history.Divergence = before.Divergence
	write := r.nextMark()
	results, err := r.Remote.Put(ctx, write)
	if err == nil {
		err = r.marked(results[0])
	}
	if err != nil {
		return err
	}
	r.history.Marks[0].Seen = seen
	r.Restored = This
	return r.save(ctx)
}

func (r *run) part(ctx context.Context, p divergence) error {
	r.history, r.markSeq = newHistory(), 0
	r.history.Divergence, r.unsaved = &p, true
	r.restored()
	return r.save(ctx)
}

// restored sets Result.Restored and Result.Full.
func (r *run) restored() {
	if r.history.Divergence == nil {
		return
	}
	if r.Full = true; r.history.Divergence.Older {
		r.Restored = Other
	}
}

func (r *run) finishComparison(ctx context.Context) error {
	if r.history.Divergence == nil {
		return nil
	}
	if len(r.history.Marks) == 0 {
		if err := r.mark(ctx); err != nil {
			return err
		}
	}
	r.history.Divergence, r.unsaved = nil, true
	return r.save(ctx)
}

// begin returns the numbers of a feed, or 0 when a comparison of all records begins.
func (r *run) begin(ctx context.Context, feed store.Feed) (n Numbers, err error) {
	p := r.history.Divergence
	if p == nil || slices.Contains(p.Begun, feed) {
		return r.base.numbers(ctx, string(feed))
	}
	if err := r.base.setNumbers(ctx, n, string(feed)); err != nil {
		return n, err
	}
	p.Begun, r.unsaved = append(p.Begun, feed), true
	return n, r.save(ctx)
}

// nextMark returns the write of a new mark. The device must store the token of the mark
// first.
func (r *run) nextMark() store.RecordWrite {
	r.history.Next = rand.Text()
	with := *r.history
	with.Marks = slices.Clone(with.Marks)
	with.add()
	for i := range with.Marks {
		with.Marks[i].Seen = nil
	}
	body, _ := json.Marshal(document{with.Marks}) // it never fails
	hash, _ := store.DocumentHash(body)
	return store.RecordWrite{Record: store.Record{RecordName: with.record(), Body: body, Hash: hash}, If: r.markSeq}
}

func (r *run) mark(ctx context.Context) error {
	write := r.nextMark()
	if err := r.base.SetSynced(ctx, r.encodeHistory()); err != nil {
		return err
	}
	results, err := r.Remote.Put(ctx, write)
	if err != nil {
		return err
	}
	return r.marked(results[0])
}

// marked handles the result of the write of a mark.
func (r *run) marked(result store.PutResult) error {
	if result.Err != nil {
		return result.Err
	}
	if result.Conflict {
		return tea.Errorf(tea.ConnectionError, "the other memory was replaced while it was synchronised, or a copy of this one synchronises at the same time; synchronise again")
	}
	r.history.add()
	r.markSeq, r.unmarked, r.unsaved = result.Seq, false, true
	return nil
}

func (r *run) note(ctx context.Context, of string, number int64) error {
	if r.unmarked || len(r.history.Marks) == 0 {
		if err := r.mark(ctx); err != nil {
			return err
		}
	}
	r.history.see(of, number)
	r.unsaved = true
	return r.save(ctx)
}

func (r *run) save(ctx context.Context) error {
	if !r.unsaved {
		return nil
	}
	if err := r.base.SetSynced(ctx, r.encodeHistory()); err != nil {
		return err
	}
	r.unsaved = false
	return nil
}

func (r *run) encodeHistory() SyncedRecord {
	raw, _ := json.Marshal(r.history) // it never fails
	return SyncedRecord{ID: r.base.historyID(), Synced: Synced{Hash: string(raw)}}
}

func (b base) historyID() string { return list(b.remote, "history") }

// history returns the stored history of the marks; nil if there is none.
func (b base) history(ctx context.Context) (*history, error) {
	id := b.historyID()
	found, err := b.SyncedStates(ctx, []string{id})
	if err != nil || found[id].Hash == "" {
		return nil, err
	}
	h := &history{}
	if json.Unmarshal([]byte(found[id].Hash), h) != nil || h.Name == "" {
		return nil, nil //nolint:nilnil // a damaged one says nothing
	}
	return h, nil
}

// synchronised returns the positions in the remote's feeds that an earlier version
// of tea has reached, and whether it synchronised with the remote.
func (b base) synchronised(ctx context.Context) (read map[string]int64, before bool, err error) {
	known, _, err := b.after(ctx, "", 1)
	if err != nil {
		return nil, false, err
	}
	before, read = len(known) > 0, map[string]int64{}
	for _, feed := range store.Feeds() {
		n, err := b.numbers(ctx, string(feed))
		if err != nil {
			return nil, false, err
		}
		read[string(feed)], before = n.Remote, before || n != (Numbers{})
	}
	return read, before, nil
}
