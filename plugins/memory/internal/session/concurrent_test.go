package session_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Everybody does everything: sessions begin, end, expire and come back while
// their files are written, read and listed and contents are swept. At no time
// is a file outside its session, and none that was stored is lost.
func TestSessionsAndFilesTogether(t *testing.T) {
	const goroutines, rounds, shared = 16, 6, 3
	each(t, func(t *testing.T, d *device) {
		for i := range shared {
			d.create(t, session.Draft{ID: fmt.Sprint("shared", i)})
		}
		for g := range goroutines {
			d.create(t, session.Draft{ID: fmt.Sprint("own", g), TTL: time.Duration(g+1) * time.Minute})
		}
		var mu sync.Mutex
		stored := map[string]string{} // by session and path
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				for i := range rounds {
					id := fmt.Sprint("shared", (g+i)%shared)
					path, content := fmt.Sprintf("%02d/%d", g, i), fmt.Sprint("content ", (g+i)%5)
					switch err := d.put(t.Context(), id, path, content); {
					case err == nil:
						mu.Lock()
						stored[id+" "+path] = content
						mu.Unlock()
					case tea.AsError(err).Type != tea.ValidationError: // archived just now
						t.Error(err)
					}
					if _, _, err := d.Archive(t.Context(), id, fmt.Sprint("by ", g)); err != nil {
						t.Error(err)
					}
					d.readAll(t, id)
					if _, _, err := d.Restore(t.Context(), id, nil); err != nil {
						t.Error(err)
					}
					if g == 0 {
						d.Pass(time.Duration(i) * time.Minute)
						if err := d.files.Sweep(t.Context()); err != nil {
							t.Error(err)
						}
					}
					if _, _, err := d.List(t.Context(), session.Query{Status: session.Active, Limit: 5}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		d = d.reopen(t)
		want(t, "sessions", len(strings.Fields(d.ids(t, session.Query{}))), goroutines+shared)
		want(t, "expired", len(strings.Fields(d.ids(t, session.Query{Reason: session.Expired}))), rounds-1)
		found := map[string]string{}
		for i := range shared {
			id := fmt.Sprint("shared", i)
			prefix := "sessions/" + id + "/"
			words := strings.Split(d.state(t, id), " "+prefix)
			want(t, "in its place", words[0], "active")
			for _, word := range words[1:] {
				path, content, _ := strings.Cut(word, "=")
				found[id+" "+path] = content
			}
		}
		want(t, "files", found, stored)
	})
}

// readAll reads the files of a session, which stay where they are meanwhile.
func (d *device) readAll(t *testing.T, id string) {
	t.Helper()
	err := d.Read(t.Context(), id, func(prefix string) error {
		for f, err := range d.files.All(t.Context(), file.Query{Within: prefix, Archived: true}) {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(f.Path, prefix) || f.SessionID != id {
				return fmt.Errorf("%s of %s is below %s", f.Path, f.SessionID, prefix)
			}
			if _, _, err := d.files.Read(t.Context(), f.Path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A reader who has the path of a file finds it while it moves to and fro.
func TestAFileCanBeReadWhileItMoves(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.create(t, session.Draft{ID: "s"})
		want(t, "put", d.put(t.Context(), "s", "f", "x"), nil)
		done := make(chan struct{})
		var group sync.WaitGroup
		for _, path := range []string{"sessions/s/f", "archive/sessions/s/f", "sessions/s/f"} {
			group.Go(func() {
				for {
					_, content, err := d.files.Read(t.Context(), path)
					if err != nil || string(content) != "x" {
						t.Errorf("reading %s gives %q, %v", path, content, err)
						return
					}
					if _, err := d.files.Stat(t.Context(), "sessions/t/f"); !errors.Is(err, store.ErrNotFound) {
						t.Errorf("another session's file: %v", err)
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		for range 20 {
			if _, _, err := d.End(t.Context(), "s"); err != nil {
				t.Error(err)
			}
			if _, _, err := d.Restore(t.Context(), "s", nil); err != nil {
				t.Error(err)
			}
		}
		close(done)
		group.Wait()
	})
}
