package documents

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Reader is what documents are read from: a [store.Tx] sees its own changes,
// a [store.QueryEngine] what was committed.
type Reader interface {
	Query(ctx context.Context, query string, args ...any) (store.Rows, error)
}

// Below gives all documents of a kind whose ids begin with folder and a
// slash, in the order of their ids. From may be nil for what was committed.
func (d *Documents) Below(ctx context.Context, from Reader, kind, folder string) ([]store.Document, error) {
	if from == nil {
		from = d.engine
	}
	found, err := below(ctx, from, kind, folder)
	if err != nil {
		return nil, fmt.Errorf("list %s below %s: %w", kind, folder, err)
	}
	return found, nil
}

func below(ctx context.Context, from Reader, kind, folder string) ([]store.Document, error) {
	// "0" is what follows "/".
	rows, err := from.Query(ctx, "SELECT id, body, version, seq FROM documents WHERE kind = ? AND id > ? AND id < ? ORDER BY id", kind, folder+"/", folder+"0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []store.Document
	for rows.Next() {
		doc := store.Document{Kind: kind}
		var body string
		if err := rows.Scan(&doc.ID, &body, &doc.Version, &doc.Seq); err != nil {
			return nil, err
		}
		doc.Body = json.RawMessage(body)
		found = append(found, doc)
	}
	return found, rows.Err()
}
