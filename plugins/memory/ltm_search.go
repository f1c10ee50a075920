package memory

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// maxPageBytes bounds the size of the entries of a page, so that the result stays
// below the limit of 64 MiB of a plugin's connection.
const maxPageBytes = 64<<20 - 64<<10

// The modes of ltm.search.
const (
	byText   = "text"
	byVector = "vector"
	hybrid   = "hybrid"
)

// LTMSearchParams are the parameters of ltm.search.
type LTMSearchParams struct {
	Namespace      string         `json:"namespace,omitempty" maxLength:"256"`
	Query          string         `json:"query,omitempty" doc:"words, \"quoted phrases\" and prefixes*; empty = all entries in the order of their keys"`
	Mode           string         `json:"mode,omitempty" enum:"text,vector,hybrid" default:"text" doc:"rank by words (BM25), by vectors (cosine), or by both (reciprocal rank fusion)"`
	Embedding      Embedding      `json:"embedding,omitempty" doc:"for vector and hybrid: the vector of the query; default: embedding.create makes it"`
	Model          string         `json:"model,omitempty" doc:"model for embedding.create"`
	Collection     string         `json:"collection,omitempty" default:"ltm" doc:"for vector and hybrid: collection of memory.backfill_embeddings"`
	MetadataFilter map[string]any `json:"metadata_filter,omitempty" doc:"values that the metadata must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	Limit          int            `json:"limit,omitempty" default:"10" minimum:"1" maximum:"1000"`
	Prefix         string         `json:"prefix,omitempty" doc:"beginning of the keys"`
	KeysOnly       bool           `json:"keys_only,omitempty" doc:"omit values and metadata"`
	Cursor         string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// LTMFound is a result of ltm.search.
type LTMFound struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value,omitempty" doc:"absent with keys_only"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"null if there is none; absent with keys_only"`
	Score    float64         `json:"score" doc:"by text BM25, by vector the cosine, hybrid the sum of 1/(60+rank) over both rankings; 0 without a query"`
	Damaged  bool            `json:"damaged,omitempty" doc:"true if the stored data is damaged; value is null then. Store the entry again or delete it"`
}

// LTMSearchResult is the result of ltm.search.
type LTMSearchResult struct {
	Success        bool       `json:"success"`
	Results        []LTMFound `json:"results" doc:"best first"`
	Count          int        `json:"count"`
	NextCursor     string     `json:"next_cursor" doc:"empty on the last page. A page ends at the limit or at 64 MiB"`
	QueryTruncated bool       `json:"query_truncated,omitempty" doc:"the query was too large and a part of it was ignored: 64 terms, 16 phrases, 16 prefixes, and 1,024 words for a prefix count"`
}

// LTMSearch is the action ltm.search.
func (m *Memory) LTMSearch(ctx context.Context, req *tea.Request, p LTMSearchParams) (*LTMSearchResult, error) {
	metadata, err := filter.Parse("metadata_filter", p.MetadataFilter)
	if err != nil {
		return nil, err
	}
	q := store.Search{
		Namespace: p.Namespace, Text: p.Query, Prefix: p.Prefix, Metadata: metadata, Limit: min(p.Limit, maxResults), KeysOnly: p.KeysOnly, MaxBytes: maxPageBytes,
	}
	listed := p.Mode != byVector && strings.TrimSpace(p.Query) == ""
	if listed {
		q.After = p.Cursor
	} else if p.Cursor != "" {
		if q.Skip, err = strconv.Atoi(p.Cursor); err != nil || q.Skip < 0 {
			return nil, tea.Errorf(tea.ValidationError, "the cursor %q is not a next_cursor of this search", p.Cursor)
		}
	}
	found, err := m.search(ctx, req, p, q)
	if err != nil {
		return nil, err
	}
	r := &LTMSearchResult{Success: true, Results: make([]LTMFound, len(found.Found)), Count: len(found.Found), QueryTruncated: found.Cut}
	for i, f := range found.Found {
		r.Results[i] = LTMFound{Key: f.Key, Score: f.Score, Damaged: f.Damaged}
		if !p.KeysOnly {
			r.Results[i].Value, r.Results[i].Metadata = orNull(f.Value), orNull(f.Metadata)
		}
	}
	switch {
	case !found.More:
	case listed:
		r.NextCursor = r.Results[r.Count-1].Key
	default:
		r.NextCursor = strconv.Itoa(q.Skip + r.Count)
	}
	return r, nil
}

// search runs the search of a mode.
func (m *Memory) search(ctx context.Context, req *tea.Request, p LTMSearchParams, q store.Search) (store.Results, error) {
	switch p.Mode {
	case byVector:
		q.Text = ""
		if p.Query == "" && len(p.Embedding) == 0 {
			return store.Results{}, tea.Errorf(tea.ValidationError, "a search by vector needs a query or an embedding")
		}
	case hybrid:
		if strings.TrimSpace(p.Query) == "" {
			return store.Results{}, tea.Errorf(tea.ValidationError, "a hybrid search needs a query")
		}
	default:
		if len(p.Embedding) > 0 {
			return store.Results{}, tea.Errorf(tea.ValidationError, "a search by text has no embedding; set mode to vector or hybrid")
		}
		return m.folder.longterm.Search(ctx, q)
	}
	entries := recall.EntryQuery{Search: q, Collection: p.Collection, Embedding: p.Embedding}
	if len(p.Embedding) == 0 {
		vectors, err := embed(ctx, req, []string{p.Query}, m.model(p.Model))
		if err != nil {
			return store.Results{}, err
		}
		entries.Embedding = vectors[0]
	}
	return m.folder.recall.Entries(ctx, entries)
}

// LTMListParams are the parameters of ltm.list.
type LTMListParams struct {
	Namespace string `json:"namespace,omitempty" maxLength:"256"`
	Prefix    string `json:"prefix,omitempty" doc:"beginning of the keys"`
	Limit     int    `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	KeysOnly  bool   `json:"keys_only,omitempty" doc:"omit values and metadata"`
	Cursor    string `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// LTMListed is an entry in a list.
type LTMListed struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value,omitempty" doc:"absent with keys_only"`
	Metadata  json.RawMessage `json:"metadata,omitempty" doc:"null if there is none; absent with keys_only"`
	UpdatedAt time.Time       `json:"updated_at"`
	ExpiresAt *time.Time      `json:"expires_at" doc:"null if the entry does not expire"`
	Damaged   bool            `json:"damaged,omitempty" doc:"true if the stored data is damaged; value is null then. Store the entry again or delete it"`
}

// LTMListResult is the result of ltm.list.
type LTMListResult struct {
	Success    bool        `json:"success"`
	Entries    []LTMListed `json:"entries" doc:"ordered by key"`
	Count      int         `json:"count"`
	NextCursor string      `json:"next_cursor" doc:"empty on the last page. A page ends at the limit or at 64 MiB"`
}

// LTMList is the action ltm.list.
func (m *Memory) LTMList(ctx context.Context, _ *tea.Request, p LTMListParams) (*LTMListResult, error) {
	page, err := m.folder.longterm.List(ctx, store.List{
		Namespace: p.Namespace, Prefix: p.Prefix, After: p.Cursor, Limit: min(p.Limit, maxResults), KeysOnly: p.KeysOnly, MaxBytes: maxPageBytes,
	})
	if err != nil {
		return nil, err
	}
	r := &LTMListResult{Success: true, Entries: make([]LTMListed, len(page.Entries)), Count: len(page.Entries)}
	for i, e := range page.Entries {
		listed := LTMListed{Key: e.Key, UpdatedAt: e.UpdatedAt, Damaged: e.Damaged}
		if !p.KeysOnly {
			listed.Value, listed.Metadata = orNull(e.Value), orNull(e.Metadata)
		}
		if !e.ExpiresAt.IsZero() {
			listed.ExpiresAt = &e.ExpiresAt
		}
		r.Entries[i] = listed
	}
	if page.More {
		r.NextCursor = r.Entries[r.Count-1].Key
	}
	return r, nil
}
