package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
)

// Whatever step of a change fails, and with it all that comes after: the next
// process finds the session and all of its files as they were, or all of them
// moved.
func TestACrashMovesAllFilesOfASessionOrNone(t *testing.T) {
	const files = 12 // more than are written one by one
	each(t, func(t *testing.T, d *device) {
		d.create(t, session.Draft{ID: "other"})
		d.create(t, session.Draft{ID: "s"})
		content := func(i int) string { return fmt.Sprint("content ", i%4) } // some are the same
		for i := range files {
			want(t, "put", d.put(t.Context(), "s", fmt.Sprintf("dir/%02d", i), content(i)), nil)
		}
		want(t, "put", d.put(t.Context(), "other", "f", "other"), nil)
		placed := func(status, prefix string) string {
			words := []string{status}
			for i := range files {
				words = append(words, fmt.Sprintf("%ssessions/s/dir/%02d=%s", prefix, i, content(i)))
			}
			return strings.Join(words, " ")
		}
		states := []string{placed("active", ""), placed("archived/ended", "archive/")}
		for round := range 2 {
			before, after := states[round], states[1-round]
			change := func() (session.Session, bool, error) { return d.End(t.Context(), "s") }
			if round == 1 {
				change = func() (session.Session, bool, error) { return d.Restore(t.Context(), "s", nil) }
			}
			sawBefore, steps := false, 0
			for ; ; steps++ {
				d.Faults.After(steps)
				_, changed, err := change()
				failed := d.Faults.Heal()
				want(t, "the failure is told", err != nil, failed)
				want(t, "changed", changed, !failed)
				d = d.reopen(t)
				got := d.state(t, "s")
				if got != before {
					want(t, fmt.Sprint("step ", steps), got, after)
					break
				}
				want(t, "it had failed", failed, true)
				sawBefore = true
			}
			want(t, "steps", sawBefore && steps > 4, true)
			_, _, err := change() // a caller without an answer asks again
			want(t, "again", err, nil)
			want(t, "state", d.state(t, "s"), after)
			want(t, "the other one", d.state(t, "other"), "active sessions/other/f=other")
			if err := d.files.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, "after the sweep", d.state(t, "s"), after)
		}
	})
}

// The same where many sessions expire at once.
func TestACrashWhileManyExpire(t *testing.T) {
	const sessions = 6
	each(t, func(t *testing.T, d *device) {
		for i := range sessions {
			id := fmt.Sprint("s", i)
			d.create(t, session.Draft{ID: id, TTL: time.Hour})
			for _, path := range []string{"a", "b"} {
				want(t, "put", d.put(t.Context(), id, path, id), nil)
			}
		}
		d.Pass(time.Hour)
		for step := 0; ; step += 3 {
			d.Faults.After(step)
			_, err := d.Sweep(t.Context())
			failed := d.Faults.Heal()
			want(t, "the failure is told", err != nil, failed)
			d = d.reopen(t)
			for i := range sessions {
				id := fmt.Sprint("s", i)
				got := d.kept(t, id)
				whole := strings.ReplaceAll("active sessions/ID/a=ID sessions/ID/b=ID", "ID", id)
				if !strings.HasPrefix(got, "active") {
					whole = strings.ReplaceAll("archived/expired archive/sessions/ID/a=ID archive/sessions/ID/b=ID", "ID", id)
				}
				want(t, fmt.Sprint("step ", step), got, whole)
			}
			if !failed {
				break
			}
		}
		want(t, "active", d.ids(t, session.Query{Status: session.Active}), "")
		want(t, "files", d.live(t), "")
	})
}

// A session that was made is there; one whose making failed is there or not,
// and can be made again by the same call.
func TestACrashWhileASessionIsMade(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for step := 0; ; step++ {
			draft := session.Draft{UserID: "ann", Key: fmt.Sprint("call ", step)}
			d.Faults.After(step)
			_, err := d.Create(t.Context(), draft)
			failed := d.Faults.Heal()
			want(t, "the failure is told", err != nil, failed)
			d = d.reopen(t)
			made := d.create(t, draft)
			want(t, "one for each call", len(strings.Fields(d.ids(t, session.Query{}))), step+1)
			want(t, "state", d.state(t, made.ID), "active")
			if !failed {
				break
			}
		}
	})
}
