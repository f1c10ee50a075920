package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Create creates a table; see [store.TableStore].
func (s *Tables) Create(ctx context.Context, n store.NewTable) (created bool, err error) {
	t, err := fromDefinition(n)
	if err != nil {
		return false, err
	}
	if strings.ContainsAny(s.o.Dir, "*?[") && s.dialect() == store.DuckDB {
		return false, tea.Errorf(tea.ValidationError, "DuckDB cannot keep tables in %s, since it reads * ? [ in a path as a pattern; set another settings.memory.path", s.o.Dir)
	}
	have, err := s.find(ctx, n.Name)
	switch {
	case err == nil:
		return false, have.matches(t)
	case tea.AsError(err).Type != tea.NotFound:
		return false, err
	}
	if s.dialect() == store.DuckDB {
		t.entry.Format = "parquet"
	}
	err = s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error { return s.create(ctx, tx, t) })
	if errors.Is(err, errExists) {
		return s.Create(ctx, n)
	}
	return err == nil, err
}

// fromDefinition checks the definition of a table.
func fromDefinition(n store.NewTable) (*table, error) {
	if err := checkTableName(n.Name); err != nil {
		return nil, err
	}
	columns, err := ParseSchema(n.Schema, n.PrimaryKey)
	if err != nil {
		return nil, err
	}
	schema, err := json.Marshal(columns)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "schema: %w", err)
	}
	return newTable(catalog.Table{Name: n.Name, Description: n.Description, Format: "rows", Schema: schema, PrimaryKey: n.PrimaryKey, Managed: true})
}

var errExists = errors.New("the table was created by a concurrent call")

func (s *Tables) create(ctx context.Context, tx store.Tx, t *table) error {
	s.mu.Lock()
	exists := s.byName[t.name] != nil
	s.mu.Unlock()
	if exists {
		return errExists
	}
	if err := checkNameIsFree(ctx, tx, s.dialect(), t.entry.Name); err != nil {
		return err
	}
	if err := s.o.Catalog.CreateIn(ctx, tx, t.entry); err != nil {
		return err
	}
	statements := t.createLog(s.dialect())
	if s.dialect() == store.DuckDB {
		statements = append(statements, s.renewedViews(t, nil)...)
	} else {
		statements = append(statements, t.createViews()...)
	}
	if err := execAll(ctx, tx, statements); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.byName[t.name] = t
	})
	return nil
}

// matches returns an error that lists how the table differs from a definition.
// The order of the columns does not matter.
func (t *table) matches(n *table) error {
	var differences []string
	for _, wanted := range n.columns {
		at := slices.IndexFunc(t.columns, func(c Column) bool { return c.Name == wanted.Name })
		switch {
		case at < 0:
			differences = append(differences, fmt.Sprintf("there is no column %q", wanted.Name))
		case t.columns[at] != wanted:
			differences = append(differences, fmt.Sprintf("column %q is %s, not %s", wanted.Name, t.columns[at], wanted))
		}
	}
	for _, have := range t.columns {
		if !slices.ContainsFunc(n.columns, func(c Column) bool { return c.Name == have.Name }) {
			differences = append(differences, fmt.Sprintf("it also has a column %q", have.Name))
		}
	}
	if !slices.Equal(t.entry.PrimaryKey, n.entry.PrimaryKey) {
		differences = append(differences, fmt.Sprintf("its primary key is (%s), not (%s)", strings.Join(t.entry.PrimaryKey, ", "), strings.Join(n.entry.PrimaryKey, ", ")))
	}
	if len(differences) > 0 {
		return tea.Errorf(tea.ValidationError, "table %q already exists with another definition: %s", t.entry.Name, strings.Join(differences, "; "))
	}
	return nil
}

func (c Column) String() string {
	if c.Nullable {
		return string(c.Type)
	}
	return string(c.Type) + " not null"
}
