package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Check returns a validation_error for a change that databases would treat differently.
func Check(c store.Change) error {
	switch {
	case c.Kind == "" || c.ID == "" || !utf8.ValidString(c.Kind) || !utf8.ValidString(c.ID) || strings.ContainsRune(c.Kind+c.ID, 0):
		return tea.Errorf(tea.ValidationError, "%q %q is not a valid name of a document", c.Kind, c.ID)
	case c.Body == nil:
		return nil
	case !utf8.Valid(c.Body) || !json.Valid(c.Body) || !strings.HasPrefix(strings.TrimLeft(string(c.Body), " \t\r\n"), "{"):
		return tea.Errorf(tea.ValidationError, "the body of %s %s is not a JSON object", c.Kind, c.ID)
	}
	return nil
}

// Reader runs queries on documents: a [store.Tx] sees its own changes, a
// [store.QueryEngine] the committed ones.
type Reader interface {
	Query(ctx context.Context, query string, args ...any) (store.Rows, error)
}

// Name is the name of a document.
type Name struct{ Kind, ID string }

// Written is a document after its changes.
type Written struct {
	Name
	Body    json.RawMessage // nil for a removed document
	Version int64
	// Before is the version before the changes, 0 for a document that did not exist.
	Before int64
	// Seq is the number of the last change. Merge sets its position in the changes.
	Seq int64
}

// Merge applies changes to documents with these versions. It returns each document once,
// in the order of the last changes. The error of a condition that is not met wraps
// [store.ErrConflict].
func Merge(changes []store.Change, versions map[Name]int64) ([]Written, error) {
	last := map[Name]*Written{}
	for i, c := range changes {
		n := Name{c.Kind, c.ID}
		w := last[n]
		if w == nil {
			w = &Written{Name: n, Version: versions[n], Before: versions[n]}
		}
		if c.If == store.New && w.Version != 0 || c.If > 0 && c.If != w.Version {
			return nil, fmt.Errorf("write %s %s: %w (version %d, not %d)", c.Kind, c.ID, store.ErrConflict, w.Version, max(c.If, 0))
		}
		if last[n] = w; c.Body == nil {
			w.Version = 0
		} else {
			w.Version++
		}
		w.Body, w.Seq = c.Body, int64(i)
	}
	all := make([]Written, 0, len(last))
	for _, w := range last {
		all = append(all, *w)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Seq < all[j].Seq })
	return all, nil
}
