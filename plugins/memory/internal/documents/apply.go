package documents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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

// Name is the name of a document.
type Name struct{ Kind, ID string }

// Written is a document after its changes.
type Written struct {
	Name
	Body    json.RawMessage // nil for a removed document
	Version int64
	// Before is the version before the changes, 0 for a document that did not exist.
	Before int64

	last int // position of the last change
}

// Merge applies changes to documents with these versions. It returns each document once,
// in the order of the last changes. The error of a condition that is not met wraps
// [store.ErrConflict].
func Merge(changes []store.Change, versions map[Name]int64) ([]Written, error) {
	byName := map[Name]*Written{}
	for i, c := range changes {
		n := Name{c.Kind, c.ID}
		w := byName[n]
		if w == nil {
			w = &Written{Name: n, Version: versions[n], Before: versions[n]}
			byName[n] = w
		}
		if (c.If == store.New && w.Version != 0) || (c.If > 0 && c.If != w.Version) {
			return nil, fmt.Errorf("write %s %s: %w (version %d, not %d)", c.Kind, c.ID, store.ErrConflict, w.Version, max(c.If, 0))
		}
		w.last = i
		if w.Body = c.Body; c.Body == nil {
			w.Version = 0
			continue
		}
		w.Version++
	}
	all := make([]Written, 0, len(byName))
	for _, w := range byName {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(x, y Written) int { return cmp.Compare(x.last, y.last) })
	return all, nil
}
