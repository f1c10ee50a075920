package longterm

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// page collects a page of results.
type page struct {
	skip, limit int
	maxBytes    int64 // of the entries; 0 = no bound
	keysOnly    bool

	found []store.Found
	bytes int64
	more  bool // a further entry matches
}

// add loads the value of an entry and adds the entry to the page. It reports whether the
// page was full; the entry then belongs to the next page.
func (p *page) add(ctx context.Context, m *Memory, e *entry, score float64) (complete bool, err error) {
	if p.skip > 0 {
		p.skip--
		return false, nil
	}
	if len(p.found) == p.limit {
		p.more = true
		return true, nil
	}
	if p.keysOnly {
		e.Value, e.Metadata = nil, nil
	} else if err := m.fillListed(ctx, e); errors.Is(err, errRemoved) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	p.bytes += e.JSONBytes()
	if p.maxBytes > 0 && p.bytes > p.maxBytes && len(p.found) > 0 {
		p.more = true
		return true, nil
	}
	p.found = append(p.found, store.Found{Memory: e.Memory, Score: score})
	return false, nil
}

// List returns live entries in the order of their keys.
func (m *Memory) List(ctx context.Context, list store.List) (store.Page, error) {
	p := &page{limit: list.Limit, maxBytes: list.MaxBytes, keysOnly: list.KeysOnly}
	if err := m.walk(ctx, list, nil, p); err != nil {
		return store.Page{}, err
	}
	entries := make([]store.Memory, len(p.found))
	for i, f := range p.found {
		entries[i] = f.Memory
	}
	return store.Page{Entries: entries, More: p.more}, nil
}

// walk adds the listed entries that match the filter to a page.
func (m *Memory) walk(ctx context.Context, list store.List, wanted filter.Filter, p *page) error {
	if err := checkPrefix(list.Namespace, list.Prefix); err != nil {
		return err
	}
	if !utf8.ValidString(list.After) {
		return tea.Errorf(tea.ValidationError, "the cursor %q is not valid UTF-8", list.After)
	}
	if err := m.ready(ctx); err != nil || list.Limit < 1 {
		return err
	}
	// The keys with a prefix are adjacent and begin with the prefix itself.
	from, after := rowKey(list.Namespace, list.Prefix), ""
	if list.After != "" {
		after = rowKey(list.Namespace, list.After)
	}
	for {
		batch := max(p.limit-len(p.found)+1, searchBatch)
		found, err := m.read(ctx, columns, `WHERE key > ? AND key >= ? AND (expires_at IS NULL OR expires_at > ?)
			ORDER BY key LIMIT ?`, after, from, m.o.Clock.Micro(), batch)
		if err != nil {
			return err
		}
		for i := range found {
			e := &found[i]
			after = rowKey(e.Namespace, e.Key)
			if e.Namespace != list.Namespace || !strings.HasPrefix(e.Key, list.Prefix) {
				return nil
			}
			if !filter.Matches(e.Metadata, wanted) {
				continue
			}
			if complete, err := p.add(ctx, m, e, 0); complete || err != nil {
				return err
			}
		}
		if len(found) < batch {
			return nil
		}
	}
}
