package tabular

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Query runs a SELECT over the committed rows, under the restrictions of
// [store.QueryEngine].
func (s *Tables) Query(ctx context.Context, q store.TableQuery) (store.TableAnswer, error) {
	names, broken, err := s.readable(ctx, q.Tables)
	if err != nil {
		return store.TableAnswer{}, err
	}
	defer s.readers.begin()() // keeps replaced files meanwhile
	box := store.Sandbox{Tables: names, Broken: broken, MaxRows: q.MaxRows, MaxBytes: q.MaxBytes, Timeout: q.Timeout, Args: q.Args}
	if s.dialect() == store.SQLite {
		if box.Tables, box.Views, err = s.inTime(ctx, names); err != nil {
			return store.TableAnswer{}, err
		}
	}
	changes, err := s.changeViews(ctx, q.SQL, names)
	if err != nil {
		return store.TableAnswer{}, err
	}
	box.Views = append(box.Views, changes...)
	found, err := s.o.Engine.Select(ctx, q.SQL, box)
	if err != nil {
		return store.TableAnswer{}, cmp.Or(s.damage(ctx, names), err)
	}
	return store.AnswerOf(found), nil
}

// inTime returns views that replace the tables with instants. SQLite stores instants as texts; in the views they can be
// compared with an instant in any form.
func (s *Tables) inTime(ctx context.Context, names []string) (tables []string, views []store.View, err error) {
	for _, name := range names {
		t, err := s.find(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(t.columns, func(c Column) bool { return c.Type == Timestamp }) {
			tables = append(tables, name)
			continue
		}
		v := store.View{Name: name}
		values := make([]string, len(t.columns))
		for i, c := range t.columns {
			v.Columns = append(v.Columns, store.Column{Name: c.Name, Type: c.shown()})
			values[i] = c.inTime(quote(c.Name))
		}
		v.Query = "SELECT " + strings.Join(values, ", ") + t.lastChanges()
		views = append(views, v)
	}
	return tables, views, nil
}

// damage returns the damage of a file of these tables, if it explains why a query
// failed.
func (s *Tables) damage(ctx context.Context, names []string) error {
	for _, name := range names {
		t, err := s.find(ctx, name)
		if err != nil {
			return nil
		}
		files, _ := s.o.Catalog.FilesIn(ctx, nil, t.name) // without files if it fails
		for _, f := range files {
			if err := s.checkFile(t, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readable returns the names of a query's tables: the named ones, or all usable
// tables. broken has the errors of the others.
func (s *Tables) readable(ctx context.Context, names []string) (tables []string, broken map[string]error, err error) {
	if err := s.open(ctx); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		t, err := s.find(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		tables = append(tables, t.entry.Name)
	}
	if names != nil {
		return tables, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	broken = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		if t := s.byName[name]; t.broken != nil {
			broken[name] = t.broken
		} else {
			tables = append(tables, t.entry.Name)
		}
	}
	return tables, broken, nil
}
