package assemble

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
)

// The bounds of a query of tables.
const (
	DefaultRows  = 100
	maxTableSize = 4 << 20
	tableTime    = 30 * time.Second
)

// TableQuery selects rows for the context.
type TableQuery struct {
	// Table is the name of the rows. SQL is one SELECT over the tables of the
	// memory; "" = all rows of Table. A {name} outside of quotes and comments
	// becomes a parameter with the value of a variable.
	Table, SQL string
	// MaxRows bounds the rows; 0 = DefaultRows.
	MaxRows int
}

// Table is the result of a TableQuery.
type Table struct {
	Name    string
	Columns []string
	Rows    []map[string]any
	// Truncated reports whether the query has more rows than MaxRows.
	Truncated bool
}

// tables runs all queries.
func (a *Assembler) tables(ctx context.Context, r Request) (tables []Table, err error) {
	for _, q := range r.Tabular {
		if a.o.Tables == nil {
			return nil, tea.Errorf(tea.DependencyMissing, "this memory does not support tables")
		}
		if q.MaxRows <= 0 {
			q.MaxRows = DefaultRows
		}
		if strings.TrimSpace(q.SQL) == "" {
			q.SQL = `SELECT * FROM "` + strings.ReplaceAll(q.Table, `"`, `""`) + `"`
		}
		sql, args, err := bind(q.SQL, r.Variables)
		if err != nil {
			return nil, err
		}
		answer, err := a.o.Tables.Query(ctx, store.TableQuery{SQL: sql, Args: args, MaxRows: q.MaxRows, MaxBytes: maxTableSize, Timeout: tableTime})
		if err != nil {
			return nil, err
		}
		tables = append(tables, Table{Name: q.Table, Columns: answer.Columns, Rows: answer.Rows, Truncated: answer.Truncated})
	}
	return tables, nil
}

// bind replaces the variables of a query by parameters.
func bind(sql string, variables map[string]any) (bound string, args []any, err error) {
	var b strings.Builder
	for sql != "" {
		end := quoted(sql)
		if end == 0 {
			if at := variable().FindStringIndex(sql); at != nil && at[0] == 0 {
				v, err := lookUp(sql[1:at[1]-1], variables)
				if err != nil {
					return "", nil, err
				}
				switch v.(type) {
				case []any, map[string]any:
					return "", nil, tea.Errorf(tea.ValidationError, "the variable %q is not a single value, so it cannot be a parameter of a query", sql[1:at[1]-1])
				}
				args = append(args, v)
				b.WriteByte('?')
				sql = sql[at[1]:]
				continue
			}
			end = 1
		}
		b.WriteString(sql[:end])
		sql = sql[end:]
	}
	return b.String(), args, nil
}

// quoted returns the length of the quotation or comment at the beginning of the
// text, 0 if there is none.
func quoted(sql string) int {
	for _, q := range []struct{ begin, end string }{{"'", "'"}, {`"`, `"`}, {"--", "\n"}, {"/*", "*/"}} {
		if !strings.HasPrefix(sql, q.begin) {
			continue
		}
		if i := strings.Index(sql[len(q.begin):], q.end); i >= 0 {
			return len(q.begin) + i + len(q.end)
		}
		return len(sql)
	}
	return 0
}

func (f *filling) tables(shared bool) {
	budget := f.r.MaxTokens
	if shared {
		budget /= 2
	}
	for i, t := range f.result.Tables {
		room := (budget - f.used) / (len(f.result.Tables) - i)
		if len(f.parts) > 0 {
			room--
		}
		p, rows, cost := t.render(room, f.tokens)
		f.result.Truncated = f.result.Truncated || t.Truncated || rows < len(t.Rows) || cost == 0
		if cost > 0 {
			f.add(p, cost)
		}
	}
}

// render writes a table as Markdown with as many rows as fit. It returns the
// number of tokens, 0 if no row fits.
func (t Table) render(room int, counter *tokens.Encoding) (p part, rows, cost int) {
	if len(t.Rows) == 0 {
		p = part{heading: "## table: " + oneLine(t.Name), body: "(no rows)", source: -1}
		if cost = counter.Count(p.text()); cost > room {
			cost = 0
		}
		return p, 0, cost
	}
	heading := "## table: " + oneLine(t.Name)
	cut := fmt.Sprintf("%s (first %d of %d rows)", heading, len(t.Rows), len(t.Rows))
	lines := []string{line(t.Columns), "|" + strings.Repeat(" --- |", len(t.Columns))}
	cost = counter.Count(cut+between) + counter.Count(lines[0]+"\n") + counter.Count(lines[1]+"\n")
	for _, row := range t.Rows {
		cells := make([]string, len(t.Columns))
		for i, column := range t.Columns {
			cells[i] = cell(row[column])
		}
		text := line(cells)
		count := counter.Count(text + "\n")
		if cost+count > room {
			break
		}
		cost += count
		lines = append(lines, text)
	}
	if rows = len(lines) - 2; rows == 0 {
		return part{}, 0, 0
	}
	if rows < len(t.Rows) {
		heading = fmt.Sprintf("%s (first %d of %d rows)", heading, rows, len(t.Rows))
	}
	return part{heading: heading, body: strings.Join(lines, "\n"), source: -1}, rows, cost
}

func line(cells []string) string {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = strings.NewReplacer("|", `\|`, "\r\n", " ", "\n", " ", "\r", " ").Replace(c)
	}
	return "| " + strings.Join(escaped, " | ") + " |"
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := value.Encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
