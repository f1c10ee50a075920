package session_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestExpiredSessionsAreArchivedImmediately(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.create(t, session.Draft{ID: "hour", TTL: time.Hour})
		d.create(t, session.Draft{ID: "day", TTL: 24 * time.Hour})
		d.create(t, session.Draft{ID: "ever"})
		for _, id := range []string{"hour", "day", "ever"} {
			want(t, "put", d.put(t.Context(), id, "f", id), nil)
		}
		d.Pass(time.Hour - time.Microsecond)
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "hour ever day")
		d.Pass(time.Hour)
		fails(t, "writing", d.put(t.Context(), "hour", "g", "x"), tea.ValidationError)
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "ever day")
		want(t, "state", d.state(t, "hour"), "archived/expired archive/sessions/hour/f=hour")
		want(t, "files", d.live(t), "sessions/day/f sessions/ever/f")

		// There is no access for days, and the next one is in a new process.
		d.Pass(48 * time.Hour)
		d = d.reopen(t)
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "ever")
		want(t, "state", d.state(t, "day"), "archived/expired archive/sessions/day/f=day")
		s, err := d.Get(t.Context(), "day")
		want(t, "archived when it was seen", s.ArchivedAt.Equal(at(48*time.Hour)) && err == nil, true)

		// It also expires if somebody ends it at that time.
		d.create(t, session.Draft{ID: "late", TTL: time.Second})
		d.Pass(49 * time.Hour)
		s, changed, err := d.End(t.Context(), "late")
		want(t, "ended late", fmt.Sprint(s.Reason, changed, err), fmt.Sprint("expired", true, nil))
		d.create(t, session.Draft{ID: "again", TTL: time.Second})
		d.Pass(50 * time.Hour)
		s, changed, err = d.Restore(t.Context(), "again", nil)
		want(t, "restored late", fmt.Sprint(s.Status, changed, err), fmt.Sprint("active", true, nil))
		want(t, "its new time", s.ExpiresAt, at(50*time.Hour+time.Second))
	})
}

func TestASweepArchivesUnusedSessions(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		const sessions = 225 // more than a page
		var group sync.WaitGroup
		for g := range 15 {
			group.Go(func() {
				for i := range sessions / 15 {
					id := fmt.Sprintf("%02d-%02d", g, i)
					if _, err := d.Create(t.Context(), session.Draft{ID: id, TTL: time.Hour}); err != nil {
						t.Error(err)
					}
					if err := d.put(t.Context(), id, "f", "x"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		n, err := d.Sweep(t.Context())
		want(t, "too early", n == 0 && err == nil, true)
		d.Pass(time.Hour)
		n, err = d.Sweep(t.Context())
		want(t, "archived", fmt.Sprint(n, err), fmt.Sprint(sessions, nil))
		want(t, "files", d.live(t), "")
		n, err = d.Sweep(t.Context())
		want(t, "again", n == 0 && err == nil, true)
	})
}

// The wall clock of a device may be wrong at one start and right at the next:
// a day ahead it archives what has time left, a day behind it waits.
func TestAClockThatIsADayWrong(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.create(t, session.Draft{ID: "s", TTL: 2 * time.Hour})
		d.create(t, session.Draft{ID: "ended", TTL: 2 * time.Hour})
		want(t, "put", d.put(t.Context(), "s", "f", "x"), nil)
		if _, _, err := d.End(t.Context(), "ended"); err != nil {
			t.Fatal(err)
		}
		d.Pass(24 * time.Hour)
		d = d.reopen(t)
		want(t, "a day ahead", d.state(t, "s"), "archived/expired archive/sessions/s/f=x")
		d.Pass(time.Hour)
		d = d.reopen(t)
		want(t, "right again", d.state(t, "s"), "active sessions/s/f=x")
		want(t, "what was ended stays", d.state(t, "ended"), "archived/ended")
		d.Pass(-24 * time.Hour)
		d = d.reopen(t)
		want(t, "a day behind", d.state(t, "s"), "active sessions/s/f=x")
		d.Pass(2 * time.Hour)
		want(t, "its time has come", d.state(t, "s"), "archived/expired archive/sessions/s/f=x")
		d = d.reopen(t)
		want(t, "and has passed for good", d.state(t, "s"), "archived/expired archive/sessions/s/f=x")
	})
}

// hooked calls a function before each write.
type hooked struct {
	store.MetadataStore
	before func()
}

func (h *hooked) Apply(ctx context.Context, changes ...store.Change) error {
	if before := h.before; before != nil {
		h.before = nil
		before()
	}
	return h.MetadataStore.Apply(ctx, changes...)
}

// Somebody who asks what expires next, while a session is being written that
// he does not see yet, must not make everybody forget it.
func TestASessionThatIsCreatedDuringAList(t *testing.T) {
	devicetest.EachDevice(t, func(t *testing.T, base *devicetest.Device) {
		h := &hooked{MetadataStore: base.Documents}
		d := over(base, h)
		d.create(t, session.Draft{ID: "minute", TTL: time.Minute})
		d.Pass(time.Minute)
		h.before = func() { want(t, "archived", d.ids(t, session.Query{Reason: session.Expired}), "minute") }
		d.create(t, session.Draft{ID: "hour", TTL: time.Hour})
		d.Pass(2 * time.Hour)
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "")
	})
}

// replacing are documents that are replaced by another way while they are queried.
type replacing struct {
	store.MetadataStore
	replace func()
}

func (r *replacing) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	found, err := r.MetadataStore.Query(ctx, q)
	if replace := r.replace; replace != nil && q.OrderBy == "expires_at" {
		r.replace = nil
		replace()
	}
	return found, err
}

// TestASessionThatWasImportedDuringASweepStayedActive writes an expired session by
// another way between the query of a sweep and its end.
func TestASessionThatWasImportedDuringASweepStayedActive(t *testing.T) {
	devicetest.EachDevice(t, func(t *testing.T, of *devicetest.Device) {
		documents := &replacing{MetadataStore: of.Documents}
		d := over(of, documents)
		d.create(t, session.Draft{ID: "first", TTL: time.Hour})
		source := d.create(t, session.Draft{ID: "source", TTL: time.Minute})
		stored, err := of.Documents.Get(t.Context(), session.Kind, source.ID)
		want(t, "get", err, nil)
		d.Pass(2 * time.Hour)
		documents.replace = func() {
			err := of.Documents.Apply(t.Context(), store.Change{Kind: session.Kind, ID: "imported", Body: bytes.ReplaceAll(stored.Body, []byte(`"source"`), []byte(`"imported"`))})
			want(t, "import", err, nil)
			d.Replaced()
		}
		_, err = d.Sweep(t.Context())
		want(t, "sweep", err, nil)
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "")
	})
}

// TestASessionOfAnotherProcessStayedActive lists the sessions of documents in which
// another process has stored one that expires.
func TestASessionOfAnotherProcessStayedActive(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		other := session.New(session.Options{Documents: d.Documents, Files: d.files, Clock: d.Clock, Shared: true})
		active := func() int {
			t.Helper()
			found, _, err := other.List(t.Context(), session.Query{Status: session.Active, Limit: 10})
			want(t, "list", err, nil)
			return len(found)
		}
		want(t, "before", active(), 0)
		d.create(t, session.Draft{ID: "s", TTL: time.Hour})
		want(t, "active", active(), 1)
		d.Pass(2 * time.Hour)
		want(t, "expired", active(), 0)
	})
}
