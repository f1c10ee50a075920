package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// device has the sessions of a folder and their files.
type device struct {
	*devicetest.Device
	*session.Sessions
	files *file.Files
}

func with(d *devicetest.Device) *device { return over(d, d.Documents) }

// over is a device whose documents are kept by something else.
func over(d *devicetest.Device, documents store.MetadataStore) *device {
	files := file.New(file.Options{Documents: documents, Blobs: d.Faults.Blobs(d.Folder), Clock: d.Clock})
	return &device{d, session.New(session.Options{Documents: documents, Files: files, Clock: d.Clock}), files}
}

func each(t *testing.T, test func(t *testing.T, d *device)) {
	t.Helper()
	devicetest.EachDevice(t, func(t *testing.T, d *devicetest.Device) {
		t.Helper()
		test(t, with(d))
	})
}

func (d *device) reopen(t *testing.T) *device {
	t.Helper()
	return with(d.Reopen(t))
}

func (d *device) create(t *testing.T, draft session.Draft) session.Session {
	t.Helper()
	s, err := d.Create(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put stores a file of a session.
func (d *device) put(ctx context.Context, id, path, content string) error {
	return d.Write(ctx, id, func(prefix string) error {
		_, err := d.files.Store(ctx, file.Draft{Path: prefix + path, Content: []byte(content), SessionID: id})
		return err
	})
}

// state is a session in a word, and its files, each with its content.
func (d *device) state(t *testing.T, id string) string {
	t.Helper()
	if _, err := d.Get(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return d.kept(t, id)
}

// kept is the state as it is in the database, where nobody has looked at what
// has expired.
func (d *device) kept(t *testing.T, id string) string {
	t.Helper()
	document, err := d.Documents.Get(t.Context(), session.Kind, id)
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Status, Reason string }
	if err := json.Unmarshal(document.Body, &s); err != nil {
		t.Fatal(err)
	}
	words := []string{s.Status}
	if s.Reason != "" {
		words[0] += "/" + s.Reason
	}
	for f, err := range d.files.All(t.Context(), file.Query{Archived: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.SessionID != id {
			continue
		}
		_, content, err := d.files.Read(t.Context(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, f.Path+"="+string(content))
	}
	return strings.Join(words, " ")
}

// live are the paths that a reader sees who asks for nothing special.
func (d *device) live(t *testing.T) string {
	t.Helper()
	var paths []string
	for f, err := range d.files.All(t.Context(), file.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, " ")
}

// ids returns the ids of the sessions that a query finds, in its order.
func (d *device) ids(t *testing.T, q session.Query) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	found, _, err := d.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	return strings.Join(ids, " ")
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func fails(t *testing.T, what string, err error, kind tea.ErrorType) string {
	t.Helper()
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != kind {
		t.Errorf("%s gives %v, want a %s", what, err, kind)
		return ""
	}
	return e.Message
}

// at is an instant of a device's clock.
func at(since time.Duration) time.Time { return storetest.Start.Add(since) }
