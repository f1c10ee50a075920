package vectors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxName       = 4096
	maxCollection = 100 // it is part of a file name
	maxDimension  = 65536
)

// Check validates items, which must have the same dimension, and returns their metadata
// as canonical JSON, "" for none. The error is a validation_error. It does not check the
// dimension of an existing collection.
func Check(collection string, items []store.VectorItem) (metadata []string, err error) {
	if !Named(collection) {
		return nil, tea.Errorf(tea.ValidationError, "%q is not a valid name of a collection: use 1 to %d bytes of UTF-8", collection, maxCollection)
	}
	seen := make(map[string]bool, len(items))
	metadata = make([]string, len(items))
	for i, item := range items {
		switch {
		case item.ID == "" || len(item.ID) > maxName:
			return nil, tea.Errorf(tea.ValidationError, "item %d: an id must have 1 to %d bytes", i, maxName)
		case !utf8.ValidString(item.ID) || !utf8.ValidString(item.Text):
			return nil, tea.Errorf(tea.ValidationError, "item %q: the id or text is not valid UTF-8", item.ID)
		case seen[item.ID]:
			return nil, tea.Errorf(tea.ValidationError, "item %d: duplicate id %q; give each item another id", i, item.ID)
		case len(item.Embedding) == 0 || len(item.Embedding) > maxDimension:
			return nil, tea.Errorf(tea.ValidationError, "item %q: an embedding must have 1 to %d numbers, not %d", item.ID, maxDimension, len(item.Embedding))
		}
		seen[item.ID] = true
		zeros := true
		for _, f := range item.Embedding {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return nil, tea.Errorf(tea.ValidationError, "item %q: the embedding contains a number that is not finite", item.ID)
			}
			zeros = zeros && f == 0
		}
		if zeros {
			return nil, tea.Errorf(tea.ValidationError, "item %q: the embedding is all zeros, which are similar to nothing", item.ID)
		}
		if got, want := len(item.Embedding), len(items[0].Embedding); got != want {
			return nil, WrongDimension(collection, got, want)
		}
		if item.Metadata != nil {
			text, err := value.Encode(item.Metadata)
			if err != nil {
				return nil, tea.Errorf(tea.ValidationError, "the metadata of item %q: %w", item.ID, err)
			}
			metadata[i] = string(text)
		}
	}
	return metadata, nil
}

// Named reports whether a collection can have the name.
func Named(collection string) bool {
	return collection != "" && len(collection) <= maxCollection && utf8.ValidString(collection)
}

// Storable returns the valid ids.
func Storable(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" || len(id) > maxName || !utf8.ValidString(id) })
}

// WrongDimension returns the validation_error of an embedding whose dimension differs
// from its collection's.
func WrongDimension(collection string, got, want int) error {
	return tea.Errorf(tea.ValidationError, "collection %q holds vectors of %d numbers, not %d: use one embedding model per collection", collection, want, got)
}

// CheckQuery returns an error if the embedding of a query is all zeros.
func CheckQuery(embedding []float32) error {
	if len(embedding) > 0 && !slices.ContainsFunc(embedding, func(f float32) bool { return f != 0 }) {
		return tea.Errorf(tea.ValidationError, "the embedding of the query is all zeros, which are similar to nothing")
	}
	return nil
}

// SearchError adds the collection, and what is wrong with the embedding, to the error of a search in an index.
func SearchError(collection string, embedding []float32, dimension int, err error) error {
	switch {
	case errors.Is(err, vector.ErrDimension):
		return WrongDimension(collection, len(embedding), dimension)
	case errors.Is(err, vector.ErrNotFinite):
		return tea.Errorf(tea.ValidationError, "the embedding of the query: %w", err)
	}
	return fmt.Errorf("search collection %q: %w", collection, err)
}

// Encode returns an embedding as little-endian float32.
func Encode(v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return raw
}

// Decode is the inverse of Encode.
func Decode(raw []byte) []float32 {
	if raw == nil {
		return nil
	}
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}

// FromRecord returns the item of the record of an existing item, with its metadata as
// canonical JSON, "" for none. The error of an invalid record is a validation_error.
func FromRecord(r store.Record) (item store.VectorItem, metadata string, err error) {
	var body store.VectorBody
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return item, "", tea.Errorf(tea.ValidationError, "the record of vector %q: %w", r.Key, err)
	}
	item = store.VectorItem{ID: r.Key, Text: body.Text, Embedding: body.Embedding}
	if body.Metadata != nil {
		decoded, err := value.Decode(body.Metadata)
		object, ok := decoded.(map[string]any)
		if err != nil || !ok {
			return item, "", tea.Errorf(tea.ValidationError, "the metadata of vector %q is not an object", r.Key)
		}
		item.Metadata = object
	}
	checked, err := Check(r.Space, []store.VectorItem{item})
	if err != nil {
		return item, "", err
	}
	return item, checked[0], nil
}

// ToRecord returns the record of an item.
func ToRecord(collection, id string, seq int64, body store.VectorBody) store.Record {
	r := store.Record{RecordName: store.RecordName{Feed: store.VectorFeed, Space: collection, Key: id}, Seq: seq}
	if body.Metadata != nil && !json.Valid(body.Metadata) {
		r.Damaged = true
		return r
	}
	r.Hash = store.VectorHash(body.Text, body.Embedding, string(body.Metadata))
	var err error
	if r.Body, err = json.Marshal(body); err != nil {
		r.Damaged = true // a non-finite number
	}
	return r
}
