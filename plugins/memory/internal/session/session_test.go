package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// shown compares what a caller sees of sessions.
var shown = cmpopts.IgnoreUnexported(session.Session{})

func same(t *testing.T, what string, got, want session.Session) {
	t.Helper()
	if diff := cmp.Diff(want, got, shown); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLifecycleOfASession(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		whole := session.Session{ID: "s", UserID: "ann", Status: session.Active, Metadata: json.RawMessage(`{"a":[1],"b":2}`), TTL: time.Hour, CreatedAt: at(0), UpdatedAt: at(0), ExpiresAt: at(time.Hour)}
		same(t, "created", d.create(t, session.Draft{ID: "s", UserID: "ann", TTL: time.Hour, Metadata: json.RawMessage(`{"b": 2, "a": [1]}`)}), whole)
		d.Pass(time.Minute)
		s, changed, err := d.End(t.Context(), "s")
		want(t, "ended", changed && err == nil, true)
		whole.Status, whole.Reason, whole.UpdatedAt, whole.ArchivedAt = session.Archived, session.Ended, at(time.Minute), at(time.Minute)
		same(t, "ended", s, whole)

		d = d.reopen(t)
		for _, again := range []func() (session.Session, bool, error){
			func() (session.Session, bool, error) { return d.End(t.Context(), "s") },
			func() (session.Session, bool, error) { return d.Archive(t.Context(), "s", "tidied up") },
		} {
			s, changed, err = again()
			want(t, "again", changed || err != nil, false)
			same(t, "the first reason stays", s, whole)
		}
		d.Pass(24 * time.Hour)
		s, err = d.Get(t.Context(), "s")
		want(t, "get", err, nil)
		same(t, "one that is archived does not expire", s, whole)

		s, changed, err = d.Restore(t.Context(), "s", nil)
		want(t, "restored", changed && err == nil, true)
		whole.Status, whole.Reason, whole.UpdatedAt, whole.ArchivedAt, whole.ExpiresAt = session.Active, "", at(24*time.Hour), time.Time{}, at(25*time.Hour)
		same(t, "restored", s, whole)
		d.Pass(24*time.Hour + 1)
		forever := time.Duration(0)
		s, changed, err = d.Restore(t.Context(), "s", &forever)
		want(t, "restored again", changed || err != nil, false)
		same(t, "one that is active stays as it is", s, whole)

		_, changed, err = d.Archive(t.Context(), "s", "a word of my own")
		want(t, "archived", changed && err == nil, true)
		_, _, err = d.Restore(t.Context(), "s", &forever)
		want(t, "restored", err, nil)
		d.Pass(1000 * time.Hour)
		want(t, "with another ttl", d.state(t, "s"), "active")
	})
}

func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, id := range []string{
			"..", ".", "a/b", "/", "a/", "../x", "%2e%2e", "%252e%252e%252fx", "a\x00b", "a\\b", "C:x", "file:x", "~", "a\nb", "\uff0e\uff0e", "a\u202eb", strings.Repeat("x", 201), "\xff", "a*",
		} {
			_, err := d.Create(t.Context(), session.Draft{ID: id})
			if e := tea.AsError(err); e == nil || (e.Type != tea.ValidationError && e.Type != tea.PermissionDenied) {
				t.Errorf("Create(%q) gives %v", id, err)
			}
			if _, err := d.Get(t.Context(), id); err == nil {
				t.Errorf("Get(%q) finds something", id)
			}
		}
		_, err := d.Create(t.Context(), session.Draft{TTL: -1})
		fails(t, "a negative ttl", err, tea.ValidationError)
		_, err = d.Create(t.Context(), session.Draft{UserID: strings.Repeat("x", 1001)})
		fails(t, "a long user_id", err, tea.ValidationError)
		for _, metadata := range []string{`[]`, `"x"`, `{`, `1`} {
			_, err := d.Create(t.Context(), session.Draft{Metadata: json.RawMessage(metadata)})
			fails(t, "metadata "+metadata, err, tea.ValidationError)
		}
		want(t, "sessions", d.ids(t, session.Query{}), "")

		_, err = d.Get(t.Context(), "none")
		fails(t, "get", err, tea.NotFound)
		_, _, err = d.End(t.Context(), "none")
		fails(t, "end", err, tea.NotFound)
		_, _, err = d.Archive(t.Context(), "none", "x")
		fails(t, "archive", err, tea.NotFound)
		_, _, err = d.Restore(t.Context(), "none", nil)
		fails(t, "restore", err, tea.NotFound)
		fails(t, "write", d.put(t.Context(), "none", "f", "x"), tea.NotFound)

		d.create(t, session.Draft{ID: "s"})
		_, err = d.Create(t.Context(), session.Draft{ID: "s"})
		fails(t, "a name that is taken", err, tea.ValidationError)
		for _, reason := range []string{"", strings.Repeat("x", 201)} {
			_, _, err = d.Archive(t.Context(), "s", reason)
			fails(t, "a reason without a text", err, tea.ValidationError)
		}
		want(t, "state", d.state(t, "s"), "active")
	})
}

func TestACallThatIsRepeatedMakesOneSession(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		first := d.create(t, session.Draft{UserID: "ann", Key: "call 1"})
		d.Pass(time.Second)
		same(t, "repeated", d.create(t, session.Draft{UserID: "ann", Key: "call 1"}), first)
		other := d.create(t, session.Draft{UserID: "ann", Key: "call 2"})
		third, fourth := d.create(t, session.Draft{}), d.create(t, session.Draft{})
		want(t, "names", len(map[string]bool{first.ID: true, other.ID: true, third.ID: true, fourth.ID: true}), 4)
		d.create(t, session.Draft{ID: "named", Key: "call 3"})
		d = d.reopen(t)
		d.create(t, session.Draft{ID: "named", Key: "call 3"})
		_, err := d.Create(t.Context(), session.Draft{ID: "named", Key: "call 4"})
		fails(t, "another call", err, tea.ValidationError)
	})
}

func TestList(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for i := range 10 {
			d.Pass(time.Duration(i) * time.Hour)
			d.create(t, session.Draft{
				ID: fmt.Sprint("s", i), UserID: []string{"ann", "bob", ""}[i%3], Metadata: json.RawMessage(fmt.Sprintf(`{"n": %d, "tags": ["t%d"], "in": {"odd": %v}}`, i, i%2, i%2 == 1)),
			})
		}
		d.Pass(10 * time.Hour)
		for id, reason := range map[string]string{"s1": "ended", "s2": "manual", "s3": "ended", "s4": "done"} {
			if _, _, err := d.Archive(t.Context(), id, reason); err != nil {
				t.Fatal(err)
			}
		}
		ann, nobody := "ann", ""
		for _, test := range []struct {
			what  string
			query session.Query
			want  string
		}{
			{"all", session.Query{}, "s9 s8 s7 s6 s5 s4 s3 s2 s1 s0"},
			{"of a user", session.Query{UserID: &ann}, "s9 s6 s3 s0"},
			{"of no user", session.Query{UserID: &nobody}, "s8 s5 s2"},
			{"active", session.Query{Status: session.Active}, "s9 s8 s7 s6 s5 s0"},
			{"archived", session.Query{Status: session.Archived}, "s4 s3 s2 s1"},
			{"ended", session.Query{Reason: "ended"}, "s3 s1"},
			{"a word of one's own", session.Query{Reason: "done"}, "s4"},
			{"both", session.Query{UserID: &ann, Status: session.Archived}, "s3"},
			{"created", session.Query{CreatedFrom: at(2 * time.Hour), CreatedTo: at(5 * time.Hour)}, "s4 s3 s2"},
			{"updated", session.Query{UpdatedFrom: at(9 * time.Hour)}, "s9 s4 s3 s2 s1"},
			{"updated before", session.Query{UpdatedTo: at(time.Hour)}, "s0"},
			{"metadata", session.Query{Metadata: storetest.Filter(t, map[string]any{"n": int64(7)})}, "s7"},
			{"metadata in a list", session.Query{Metadata: storetest.Filter(t, map[string]any{"tags": "t1", "n": []any{int64(3), int64(4), int64(5)}})}, "s5 s3"},
			{"metadata inside", session.Query{Metadata: storetest.Filter(t, map[string]any{"in.odd": true}), Status: session.Active}, "s9 s7 s5"},
			{"no such", session.Query{Metadata: storetest.Filter(t, map[string]any{"x": nil})}, ""},
		} {
			want(t, test.what, d.ids(t, test.query), test.want)
		}
	})
}

// Sessions that come or change while somebody pages move no page.
func TestPages(t *testing.T) {
	for what, test := range map[string]struct {
		metadata map[string]any
		count    int
	}{"all": {nil, 23}, "filtered": {map[string]any{"third": true}, 8}} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, d *device) {
				for i := range 23 { // several at the same instant
					d.Pass(time.Duration(i/4) * time.Second)
					d.create(t, session.Draft{ID: fmt.Sprintf("s%02d", i), Metadata: json.RawMessage(fmt.Sprintf(`{"third": %v}`, i%3 == 0))})
				}
				seen := map[string]bool{}
				pages := 1
				for after := ""; ; pages++ {
					found, next, err := d.List(t.Context(), session.Query{Limit: 4, After: after, Metadata: storetest.Filter(t, test.metadata)})
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range found {
						want(t, s.ID+" was seen before, or is new", seen[s.ID] || !strings.HasPrefix(s.ID, "s"), false)
						seen[s.ID] = true
					}
					if after = next; next == "" {
						break
					}
					d.Pass(time.Hour)
					d.create(t, session.Draft{ID: fmt.Sprint("new", pages), Metadata: json.RawMessage(`{"third": true}`)})
					if _, _, err := d.End(t.Context(), found[0].ID); err != nil {
						t.Fatal(err)
					}
				}
				want(t, "sessions, pages", []int{len(seen), pages}, []int{test.count, (test.count + 3) / 4})
			})
		})
	}
}
