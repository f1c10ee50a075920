package memory

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	maxItems      = 100_000
	maxResults    = 1000
	maxTTLSeconds = 1e10
)

func ltmActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("ltm.store", "Stores values that last.", (*Memory).LTMStore, tea.Idempotent()),
		tea.NewMethod("ltm.retrieve", "Gives the value under a key.", (*Memory).LTMRetrieve, tea.Idempotent()),
		tea.NewMethod("ltm.delete", "Removes the value under a key.", (*Memory).LTMDelete, tea.Idempotent()),
		tea.NewMethod("ltm.search", "Finds stored values by their words and metadata.", (*Memory).LTMSearch, tea.Idempotent()),
		tea.NewMethod("ltm.list", "Lists stored values by their keys.", (*Memory).LTMList, tea.Idempotent()),
	}
}

// LTMItem is an entry to be stored.
type LTMItem struct {
	Key      string          `json:"key" minLength:"1" doc:"name of the entry; parts of a path are a good habit: user/7/name"`
	Value    json.RawMessage `json:"value" doc:"any JSON"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"an object to search by"`
	TTL      float64         `json:"ttl,omitempty" minimum:"0" doc:"seconds that the entry lives; 0 = for ever"`
}

// LTMStoreParams are the parameters of ltm.store: one entry, or items.
type LTMStoreParams struct {
	Key      string          `json:"key,omitempty" doc:"name of the entry; parts of a path are a good habit: user/7/name"`
	Value    json.RawMessage `json:"value,omitempty" doc:"any JSON"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"an object to search by"`
	TTL      float64         `json:"ttl,omitempty" minimum:"0" doc:"seconds that the entry lives; 0 = for ever"`
	Items    []LTMItem       `json:"items,omitempty" doc:"many entries at once instead of key and value; all are stored or none"`
}

// LTMStored says what became of an entry.
type LTMStored struct {
	Stored       bool   `json:"stored" doc:"false where items is empty"`
	Created      bool   `json:"created" doc:"false: the key was there before"`
	Key          string `json:"key,omitempty"`
	ContentHash  string `json:"content_hash,omitempty" doc:"SHA-256 of the value's canonical JSON"`
	Deduplicated bool   `json:"deduplicated" doc:"the same content was there: nothing was written"`
	Inlined      bool   `json:"inlined" doc:"the value is in its row; a large one is a file of its own"`
	ByteSize     int64  `json:"byte_size" doc:"length of the value's JSON"`
}

// LTMStoreResult is the result of ltm.store. With items, the fields of one
// entry are sums: created and deduplicated mean all of them.
type LTMStoreResult struct {
	Success bool `json:"success"`
	LTMStored
	Count int         `json:"count" doc:"number of entries"`
	Items []LTMStored `json:"items,omitempty" doc:"one for each item, in their order"`
}

// LTMStore is the action ltm.store.
func (m *Memory) LTMStore(ctx context.Context, _ *tea.Request, p LTMStoreParams) (*LTMStoreResult, error) {
	items := p.Items
	single := p.Key != "" || p.Value != nil
	switch {
	case single && items != nil:
		return nil, tea.Errorf(tea.ValidationError, "ltm.store takes key and value, or items, not both")
	case single && (p.Key == "" || p.Value == nil):
		return nil, tea.Errorf(tea.ValidationError, "ltm.store needs key and value")
	case single:
		items = []LTMItem{{Key: p.Key, Value: p.Value, Metadata: p.Metadata, TTL: p.TTL}}
	case items == nil:
		return nil, tea.Errorf(tea.ValidationError, "ltm.store needs key and value, or items")
	case len(items) > maxItems:
		return nil, tea.Errorf(tea.ValidationError, "%d items are more than %d", len(items), maxItems)
	}
	entries := make([]store.Entry, len(items))
	for i, item := range items {
		ttl, err := seconds("ttl", item.TTL)
		if err == nil {
			err = checkName("key", item.Key)
		}
		if err != nil {
			return nil, err
		}
		entries[i] = store.Entry{Key: item.Key, Value: item.Value, Metadata: objectOrNone(item.Metadata), TTL: ttl}
	}
	stored, err := m.folder.longterm.Store(ctx, entries...)
	if err != nil {
		return nil, err
	}
	return storeResult(single, items, stored), nil
}

func storeResult(single bool, items []LTMItem, stored []store.Stored) *LTMStoreResult {
	all := make([]LTMStored, len(stored))
	for i, s := range stored {
		all[i] = LTMStored{Stored: true, Created: s.Created, Key: items[i].Key, ContentHash: s.ContentHash, Deduplicated: s.Deduplicated, Inlined: s.Inlined, ByteSize: s.ByteSize}
	}
	if single {
		return &LTMStoreResult{Success: true, LTMStored: all[0], Count: 1}
	}
	some := len(all) > 0
	sum := LTMStored{Stored: some, Created: some, Deduplicated: some, Inlined: some}
	for _, s := range all {
		sum.Created = sum.Created && s.Created
		sum.Deduplicated = sum.Deduplicated && s.Deduplicated
		sum.Inlined = sum.Inlined && s.Inlined
		sum.ByteSize += s.ByteSize
	}
	return &LTMStoreResult{Success: true, LTMStored: sum, Count: len(all), Items: all}
}

// seconds is a parameter as a duration.
func seconds(name string, s float64) (time.Duration, error) {
	if s < 0 || s > maxTTLSeconds {
		return 0, tea.Errorf(tea.ValidationError, "%s must be from 0 to %g seconds, not %g", name, maxTTLSeconds, s)
	}
	const longest = time.Duration(1<<63 - 1)
	if s >= longest.Seconds() {
		return longest / 2, nil // beyond any clock
	}
	if s == 0 {
		return 0, nil
	}
	return max(time.Duration(s*float64(time.Second)), 1), nil // none at all would be for ever
}

// objectOrNone takes null for absent.
func objectOrNone(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// LTMRetrieveParams are the parameters of ltm.retrieve.
type LTMRetrieveParams struct {
	Key     string          `json:"key" minLength:"1"`
	Default json.RawMessage `json:"default,omitempty" doc:"the value where there is no entry; default null"`
}

// LTMRetrieveResult is the result of ltm.retrieve.
type LTMRetrieveResult struct {
	Success     bool            `json:"success"`
	Value       json.RawMessage `json:"value"`
	Found       bool            `json:"found"`
	Metadata    json.RawMessage `json:"metadata" doc:"null where there is none"`
	ContentHash string          `json:"content_hash" doc:"empty where nothing was found"`
}

// LTMRetrieve is the action ltm.retrieve.
func (m *Memory) LTMRetrieve(ctx context.Context, _ *tea.Request, p LTMRetrieveParams) (*LTMRetrieveResult, error) {
	found, err := m.folder.longterm.Retrieve(ctx, p.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &LTMRetrieveResult{Success: true, Value: orNull(p.Default), Metadata: orNull(nil)}, nil
	case err != nil:
		return nil, err
	}
	return &LTMRetrieveResult{Success: true, Value: found.Value, Found: true, Metadata: orNull(found.Metadata), ContentHash: found.ContentHash}, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// LTMDeleteParams are the parameters of ltm.delete.
type LTMDeleteParams struct {
	Key string `json:"key" minLength:"1"`
}

// LTMDeleteResult is the result of ltm.delete.
type LTMDeleteResult struct {
	Success bool   `json:"success"`
	Deleted bool   `json:"deleted" doc:"false: there was no such entry"`
	Key     string `json:"key"`
}

// LTMDelete is the action ltm.delete.
func (m *Memory) LTMDelete(ctx context.Context, _ *tea.Request, p LTMDeleteParams) (*LTMDeleteResult, error) {
	deleted, err := m.folder.longterm.Delete(store.Freeing(ctx), p.Key)
	if err != nil {
		return nil, err
	}
	return &LTMDeleteResult{Success: true, Deleted: deleted, Key: p.Key}, nil
}

// LTMSearchParams are the parameters of ltm.search.
type LTMSearchParams struct {
	Query          string         `json:"query,omitempty" doc:"words, \"quoted phrases\" and prefixes*; empty = all entries in the order of their keys"`
	MetadataFilter map[string]any `json:"metadata_filter,omitempty" doc:"values that the metadata must have; a list means any of its values, an object of operators compares: {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	Limit          int            `json:"limit,omitempty" default:"10" minimum:"1" maximum:"1000"`
	Prefix         string         `json:"prefix,omitempty" doc:"what the keys begin with"`
}

// LTMFound is a result of ltm.search.
type LTMFound struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Metadata json.RawMessage `json:"metadata"`
	Score    float64         `json:"score" doc:"BM25; 0 without a query"`
	Damaged  bool            `json:"damaged,omitempty" doc:"the value is not what was stored, and null here; store it again or delete it"`
}

// LTMSearchResult is the result of ltm.search.
type LTMSearchResult struct {
	Success bool       `json:"success"`
	Results []LTMFound `json:"results" doc:"best first"`
	Count   int        `json:"count"`
}

// LTMSearch is the action ltm.search.
func (m *Memory) LTMSearch(ctx context.Context, _ *tea.Request, p LTMSearchParams) (*LTMSearchResult, error) {
	metadata, err := filter.Parse("metadata_filter", p.MetadataFilter)
	if err != nil {
		return nil, err
	}
	found, err := m.folder.longterm.Search(ctx, store.Search{Text: p.Query, Prefix: p.Prefix, Metadata: metadata, Limit: min(p.Limit, maxResults)})
	if err != nil {
		return nil, err
	}
	r := &LTMSearchResult{Success: true, Results: make([]LTMFound, len(found)), Count: len(found)}
	for i, f := range found {
		r.Results[i] = LTMFound{Key: f.Key, Value: orNull(f.Value), Metadata: orNull(f.Metadata), Score: f.Score, Damaged: f.Damaged}
	}
	return r, nil
}

// LTMListParams are the parameters of ltm.list.
type LTMListParams struct {
	Prefix string `json:"prefix,omitempty" doc:"what the keys begin with"`
	Limit  int    `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor string `json:"cursor,omitempty" doc:"next_cursor of the page before"`
}

// LTMListed is an entry in a list.
type LTMListed struct {
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Metadata  json.RawMessage `json:"metadata"`
	UpdatedAt time.Time       `json:"updated_at"`
	ExpiresAt *time.Time      `json:"expires_at" doc:"null for an entry that lives for ever"`
	Damaged   bool            `json:"damaged,omitempty" doc:"the value is not what was stored, and null here; store it again or delete it"`
}

// LTMListResult is the result of ltm.list.
type LTMListResult struct {
	Success    bool        `json:"success"`
	Entries    []LTMListed `json:"entries" doc:"in the order of their keys"`
	Count      int         `json:"count"`
	NextCursor string      `json:"next_cursor" doc:"empty on the last page"`
}

// LTMList is the action ltm.list.
func (m *Memory) LTMList(ctx context.Context, _ *tea.Request, p LTMListParams) (*LTMListResult, error) {
	limit := min(p.Limit, maxResults)
	page, err := m.folder.longterm.List(ctx, store.List{Prefix: p.Prefix, After: p.Cursor, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	r := &LTMListResult{Success: true, Entries: []LTMListed{}}
	for i, e := range page {
		if i == limit {
			r.NextCursor = r.Entries[i-1].Key
			break
		}
		listed := LTMListed{Key: e.Key, Value: orNull(e.Value), Metadata: orNull(e.Metadata), UpdatedAt: e.UpdatedAt, Damaged: e.Damaged}
		if !e.ExpiresAt.IsZero() {
			listed.ExpiresAt = &e.ExpiresAt
		}
		r.Entries = append(r.Entries, listed)
	}
	r.Count = len(r.Entries)
	return r, nil
}
