package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxItems      = 100_000
	maxResults    = 1000
	maxTTLSeconds = 1e10
)

func ltmActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("ltm.store", "Stores values permanently.", writes((*Memory).LTMStore), tea.Idempotent()),
		tea.NewMethod("ltm.retrieve", "Returns the value under a key.", (*Memory).LTMRetrieve, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("ltm.delete", "Removes the value under a key, or all values whose keys begin with a prefix.", writes((*Memory).LTMDelete), tea.Idempotent()),
		tea.NewMethod("ltm.search", "Finds stored values by their words, their vectors or both, and by their metadata.", (*Memory).LTMSearch, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("ltm.list", "Lists stored values by their keys.", (*Memory).LTMList, tea.Idempotent(), tea.Reads()),
	}
}

// LTMItem is an entry to be stored.
type LTMItem struct {
	Key      string          `json:"key" minLength:"1" doc:"key of the entry, preferably with slashes: user/7/name"`
	Value    json.RawMessage `json:"value" doc:"any JSON"`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"object to filter by"`
	TTL      float64         `json:"ttl,omitempty" minimum:"0" doc:"seconds until the entry expires; 0 = never"`
	// Embedding is stored in the collection of the call.
	Embedding Embedding `json:"embedding,omitempty" doc:"vector of the value, for ltm.search with mode vector or hybrid"`
}

// LTMStoreParams are the parameters of ltm.store: one entry, or items.
type LTMStoreParams struct {
	Namespace string          `json:"namespace,omitempty" maxLength:"256" doc:"separates the entries of users or purposes"`
	Key       string          `json:"key,omitempty" doc:"key of the entry, preferably with slashes: user/7/name"`
	Value     json.RawMessage `json:"value,omitempty" doc:"any JSON"`
	Metadata  json.RawMessage `json:"metadata,omitempty" doc:"object to filter by"`
	TTL       float64         `json:"ttl,omitempty" minimum:"0" doc:"seconds until the entry expires; 0 = never, unless the metadata have _cache_ttl (seconds) or _cache_expires_at (RFC 3339, or seconds since 1970)"`
	Embedding Embedding       `json:"embedding,omitempty" doc:"vector of the value, for ltm.search with mode vector or hybrid, in place of one that memory.backfill_embeddings would make"`
	Model     string          `json:"embedding_model,omitempty" doc:"name of the model that made the embeddings"`
	// Collection is for entries with an embedding.
	Collection string    `json:"collection,omitempty" default:"ltm" doc:"collection for embeddings"`
	Items      []LTMItem `json:"items,omitempty" doc:"several entries, instead of key and value; they are stored atomically, and no key can appear twice"`
}

// LTMStored is the outcome of storing an entry.
type LTMStored struct {
	Stored       bool   `json:"stored" doc:"false if items is empty"`
	Created      bool   `json:"created" doc:"false if the key existed"`
	Key          string `json:"key,omitempty"`
	ContentHash  string `json:"content_hash,omitempty" doc:"SHA-256 of the value's canonical JSON"`
	Deduplicated bool   `json:"deduplicated" doc:"true if the same content was stored already, so nothing was written"`
	Inlined      bool   `json:"inlined" doc:"true if the value is in the database, false if it is in a separate file"`
	ByteSize     int64  `json:"byte_size" doc:"length of the value's JSON"`
}

// LTMStoreResult is the result of ltm.store. With items, byte_size is the sum,
// and created, deduplicated and inlined are true if they are true for all of
// them.
type LTMStoreResult struct {
	Success bool `json:"success"`
	LTMStored
	Count        int         `json:"count" doc:"number of entries"`
	Acknowledged string      `json:"acknowledged" enum:"local,remote" doc:"where the entries are durable: on this device, or in the shared database or bucket"`
	Items        []LTMStored `json:"items,omitempty" doc:"one for each item, in their order"`
}

// LTMStore is the action ltm.store.
func (m *Memory) LTMStore(ctx context.Context, _ *tea.Request, p LTMStoreParams) (*LTMStoreResult, error) {
	items := p.Items
	single := p.Key != "" || p.Value != nil
	switch {
	case single && items != nil:
		return nil, tea.Errorf(tea.ValidationError, "ltm.store takes key and value, or items, not both")
	case items != nil && len(p.Embedding) > 0:
		return nil, tea.Errorf(tea.ValidationError, "ltm.store with items has no parameter embedding; write the embedding of each item into the item")
	case single && (p.Key == "" || p.Value == nil):
		return nil, tea.Errorf(tea.ValidationError, "ltm.store needs key and value")
	case single:
		items = []LTMItem{{Key: p.Key, Value: p.Value, Metadata: p.Metadata, TTL: p.TTL, Embedding: p.Embedding}}
	case items == nil:
		return nil, tea.Errorf(tea.ValidationError, "ltm.store needs key and value, or items")
	case len(items) > maxItems:
		return nil, tea.Errorf(tea.ValidationError, "too many items: %d (limit %d)", len(items), maxItems)
	}
	entries := make([]store.Entry, len(items))
	var embedded []recall.Embedded
	var at []int // their indexes in entries
	for i, item := range items {
		ttl, err := seconds("ttl", item.TTL)
		if err == nil {
			err = checkName("key", item.Key)
		}
		if err != nil {
			return nil, err
		}
		entries[i] = store.Entry{Namespace: p.Namespace, Key: item.Key, Value: item.Value, Metadata: objectOrNone(item.Metadata), TTL: ttl}
		if ttl == 0 {
			if entries[i].TTL, err = cacheTTL(entries[i].Metadata, m.folder.clock.Now()); err != nil {
				return nil, err
			}
		}
		if len(item.Embedding) > 0 {
			embedded = append(embedded, recall.Embedded{Entry: entries[i], Vector: item.Embedding, Model: p.Model})
			at = append(at, i)
		}
	}
	if err := m.folder.recall.Check(ctx, p.Collection, embedded...); err != nil {
		return nil, err
	}
	stored, err := m.folder.longterm.Store(ctx, entries...)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		embedded[n].Hash = stored[i].ContentHash
	}
	if err := m.folder.recall.Put(ctx, p.Collection, embedded...); err != nil {
		return nil, err
	}
	r := storeResult(single, items, stored)
	r.Acknowledged = m.folder.acknowledged
	return r, nil
}

// cacheTTL returns the time until the expiry that metadata set under the names of other
// programs, or 0 if there is none.
func cacheTTL(metadata json.RawMessage, now time.Time) (time.Duration, error) {
	var names struct {
		TTL       any `json:"_cache_ttl"`
		ExpiresAt any `json:"_cache_expires_at"`
	}
	if !bytes.Contains(metadata, []byte("_cache_")) || json.Unmarshal(metadata, &names) != nil {
		return 0, nil // the store refuses metadata that is not an object
	}
	var left time.Duration
	switch at := names.ExpiresAt.(type) {
	case nil:
		ttl, ok := names.TTL.(float64)
		if names.TTL != nil && !ok {
			return 0, tea.Errorf(tea.ValidationError, "_cache_ttl in the metadata must be a number of seconds, not %v; or set ttl", names.TTL)
		}
		return seconds("_cache_ttl", ttl)
	case float64:
		if max(at, -at) > maxTTLSeconds {
			return 0, tea.Errorf(tea.ValidationError, "_cache_expires_at in the metadata must be seconds since 1970, not %v; or set ttl", at)
		}
		left = time.UnixMicro(int64(at * 1e6)).Sub(now)
	case string:
		parsed, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return 0, tea.Errorf(tea.ValidationError, "_cache_expires_at in the metadata must be a time in RFC 3339, not %q; or set ttl", at)
		}
		left = parsed.Sub(now)
	default:
		return 0, tea.Errorf(tea.ValidationError, "_cache_expires_at in the metadata must be a time, not %v; or set ttl", at)
	}
	return max(left, 1), nil // a time in the past expires at once
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

// seconds converts a parameter to a duration.
func seconds(name string, s float64) (time.Duration, error) {
	if s < 0 || s > maxTTLSeconds {
		return 0, tea.Errorf(tea.ValidationError, "%s must be from 0 to %g seconds, not %g", name, maxTTLSeconds, s)
	}
	const longest = time.Duration(1<<63 - 1)
	if s >= longest.Seconds() {
		return longest / 2, nil // beyond any clock's range
	}
	if s == 0 {
		return 0, nil
	}
	return max(time.Duration(s*float64(time.Second)), 1), nil // 0 would mean no limit
}

// objectOrNone returns nil for null.
func objectOrNone(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// LTMRetrieveParams are the parameters of ltm.retrieve.
type LTMRetrieveParams struct {
	Namespace string          `json:"namespace,omitempty" maxLength:"256"`
	Key       string          `json:"key" minLength:"1"`
	Default   json.RawMessage `json:"default,omitempty" doc:"value to return if there is no entry; default null"`
}

// LTMRetrieveResult is the result of ltm.retrieve.
type LTMRetrieveResult struct {
	Success     bool            `json:"success"`
	Value       json.RawMessage `json:"value"`
	Found       bool            `json:"found"`
	Metadata    json.RawMessage `json:"metadata" doc:"null if there is none"`
	ContentHash string          `json:"content_hash" doc:"empty if nothing was found"`
}

// LTMRetrieve is the action ltm.retrieve.
func (m *Memory) LTMRetrieve(ctx context.Context, _ *tea.Request, p LTMRetrieveParams) (*LTMRetrieveResult, error) {
	found, err := m.folder.longterm.Retrieve(ctx, p.Namespace, p.Key)
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
	Namespace string `json:"namespace,omitempty" maxLength:"256"`
	Key       string `json:"key,omitempty"`
	Prefix    string `json:"prefix,omitempty" doc:"instead of key: removes all entries whose keys begin with it"`
}

// LTMDeleteResult is the result of ltm.delete.
type LTMDeleteResult struct {
	Success bool   `json:"success"`
	Deleted bool   `json:"deleted" doc:"false if the entry did not exist"`
	Key     string `json:"key,omitempty"`
	Count   int    `json:"count" doc:"number of entries that were removed"`
}

// LTMDelete is the action ltm.delete.
func (m *Memory) LTMDelete(ctx context.Context, _ *tea.Request, p LTMDeleteParams) (*LTMDeleteResult, error) {
	if (p.Key == "") == (p.Prefix == "") {
		return nil, tea.Errorf(tea.ValidationError, "ltm.delete needs a key or a prefix, but not both")
	}
	r := &LTMDeleteResult{Success: true, Key: p.Key}
	var err error
	if p.Key == "" {
		r.Count, err = m.folder.longterm.DeletePrefix(store.Freeing(ctx), p.Namespace, p.Prefix)
		r.Deleted = r.Count > 0
	} else if r.Deleted, err = m.folder.longterm.Delete(store.Freeing(ctx), p.Namespace, p.Key); r.Deleted {
		r.Count = 1
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}
