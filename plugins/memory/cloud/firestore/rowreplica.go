package firestore

import (
	"context"
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

var _ tabular.NumberedRows = rowStore{}

func (s rowStore) Versions(ctx context.Context) (map[string]int64, error) {
	versions := map[string]int64{}
	err := s.d.tables(ctx, func(_ string, t tableState) error { versions[t.name] = t.version; return nil })
	return versions, err
}

func (s rowStore) Changed(ctx context.Context, table string, after int64, limit int) (all []tabular.NumberedRow, more bool, err error) {
	source := rowSource{s.d}
	for {
		rows, more, err := source.page(ctx, table, after, limit)
		if err != nil {
			return nil, false, err
		}
		for _, r := range rows {
			if after = r.Seq; !r.Gone {
				all = append(all, tabular.NumberedRow{Key: r.Key, Seq: r.Seq, Body: r.Body})
			}
		}
		if len(all) > 0 || !more {
			return all, more, nil
		}
	}
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.NumberedRow, err error) {
	head := s.table(table)
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = rowName(head, key)
	}
	found, err := s.d.get(ctx, []string{opField, numberField, bodyField}, names...)
	for i, key := range keys {
		if f := found[names[i]].Fields; f != nil && f[opField].text() != deleted {
			all = append(all, tabular.NumberedRow{Key: key, Seq: f[numberField].int(), Body: json.RawMessage(f[bodyField].text())})
		}
	}
	return all, err
}

func (s rowStore) Put(ctx context.Context, table string, writes []tabular.RowWrite) (numbers []int64, err error) {
	keys := make([]string, len(writes))
	for i, w := range writes {
		keys[i] = w.Key
	}
	_, err = s.change(ctx, table, store.TableCall{}, keys, func(x *rowChange) error {
		numbers = make([]int64, len(writes))
		for i, w := range writes {
			have := int64(0)
			if x.exists(w.Key) {
				have = x.found[rowName(x.document, w.Key)].Fields[numberField].int()
			}
			switch {
			case w.If != store.AnySeq && w.If != have:
				numbers[i] = -1
			case w.Deleted && have != 0:
				x.remove(w.Key)
			case !w.Deleted:
				if err := x.put(w.Key, w.Body); err != nil {
					return err
				}
				numbers[i] = x.version
			}
		}
		return nil
	})
	return numbers, err
}
