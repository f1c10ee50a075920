package remotesqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/rowmirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s rowStore) Versions(ctx context.Context) (map[string]int64, error) {
	rows, err := s.d.query(ctx, "SELECT name, version FROM tea_tables")
	versions := make(map[string]int64, len(rows))
	for _, row := range rows {
		versions[text(row, 0)] = number(row, 1)
	}
	return versions, err
}

func (s rowStore) Changed(ctx context.Context, table string, after int64, limit int) (all []tabular.NumberedRow, more bool, err error) {
	rows, err := s.d.query(ctx, fmt.Sprintf(pageSQL, "seq", "CAST(?2 AS INTEGER)", limit+1, maxPage), table, integer(after))
	if len(rows) > 0 {
		more = number(rows[0], 3) > int64(min(len(rows), limit))
	}
	return numbered(rows[:min(len(rows), limit)]), more, err
}

func numbered(rows [][]any) []tabular.NumberedRow {
	all := make([]tabular.NumberedRow, len(rows))
	for i, row := range rows {
		all[i] = tabular.NumberedRow{Key: text(row, 0), Seq: number(row, 1), Body: json.RawMessage(text(row, 2))}
	}
	return all
}

const rowsAtOnce = 5000

type rowSource struct{ d *database }

func (s rowSource) States(ctx context.Context) (map[string]rowmirror.State, error) {
	rows, err := s.d.query(ctx, "SELECT name, version, removed, born FROM tea_tables")
	states := make(map[string]rowmirror.State, len(rows))
	for _, row := range rows {
		states[text(row, 0)] = rowmirror.State{Version: number(row, 1), Removed: number(row, 2), Born: text(row, 3)}
	}
	return states, err
}

func (s rowSource) Changed(ctx context.Context, table string, after int64) ([]rowmirror.Row, bool, error) {
	rows, more, err := rowStore(s).Changed(ctx, table, after, rowsAtOnce)
	all := make([]rowmirror.Row, len(rows))
	for i, r := range rows {
		all[i] = rowmirror.Row{Key: r.Key, Seq: r.Seq, Body: r.Body}
	}
	return all, more, err
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.NumberedRow, err error) {
	values := make([][]any, len(keys))
	for i, key := range keys {
		values[i] = []any{key}
	}
	lists, err := chunks(values)
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		for after := ""; ; {
			rows, err := s.d.query(ctx, fmt.Sprintf(pageSQL, "key", "?2 AND key IN (SELECT json_extract(value, '$[0]') FROM json_each(?3))", nameBatch, maxPage), table, after, list)
			if err != nil {
				return nil, err
			}
			all = append(all, numbered(rows)...)
			if len(rows) == 0 || len(rows) < nameBatch && number(rows[0], 3) == int64(len(rows)) {
				break
			}
			after = text(rows[len(rows)-1], 0)
		}
	}
	return all, nil
}

// metSQL selects the writes of a list [key, body or null, number] whose conditions are met. A negative number always
// matches.
const metSQL = " FROM json_each(%s) AS j WHERE json_extract(j.value, '$[2]') IN (-1, coalesce((SELECT r.seq FROM tea_rows AS r WHERE r.name = ?2 AND r.key = json_extract(j.value, '$[0]')), 0))"

func (s rowStore) Put(ctx context.Context, table string, writes []tabular.RowWrite) ([]int64, error) {
	values := make([][]any, len(writes))
	for i, w := range writes {
		values[i] = []any{w.Key, orNull(string(w.Body)), w.If}
	}
	lists, err := chunks(values)
	if err != nil {
		return nil, err
	}
	c := newChange(table, store.TableCall{})
	var offsets []int // of the lists
	offset := 0
	for _, list := range lists {
		c.results = append(c.results, "json((SELECT json_group_array(j.key)"+fmt.Sprintf(metSQL, c.arg(list))+"))")
		met := fmt.Sprintf(metSQL, "?3")
		removals := met + " AND json_extract(j.value, '$[1]') IS NULL"
		n := fmt.Sprintf("%s + %d + j.key", lastChange, offset+1)
		c.add("UPDATE tea_tables SET removed = version + "+strconv.Itoa(len(writes))+" WHERE name = ?2 AND EXISTS (SELECT 1"+removals+") AND "+pending, table, list)
		c.add("INSERT INTO tea_rows (name, key, seq, body) SELECT ?2, json_extract(j.value, '$[0]'), "+n+", json_extract(j.value, '$[1]')"+met+" AND json_extract(j.value, '$[1]') IS NOT NULL AND "+pending+
			" ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body", table, list)
		c.add("DELETE FROM tea_rows WHERE name = ?2 AND key IN (SELECT json_extract(j.value, '$[0]')"+removals+") AND "+pending, table, list)
		var parsed []json.RawMessage
		if err := json.Unmarshal([]byte(list), &parsed); err != nil {
			return nil, err
		}
		offsets, offset = append(offsets, offset), offset+len(parsed)
	}
	o, err := s.do(ctx, c, strconv.Itoa(len(writes)))
	if err != nil {
		return nil, err
	}
	numbers := slices.Repeat([]int64{-1}, len(writes))
	for i, raw := range o.results {
		var met []int
		if err := json.Unmarshal(raw, &met); err != nil {
			return nil, err
		}
		for _, at := range met {
			at += offsets[i]
			if numbers[at] = o.version + int64(at) + 1; writes[at].Deleted {
				numbers[at] = 0
			}
		}
	}
	return numbers, nil
}
