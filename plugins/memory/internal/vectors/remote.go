package vectors

import "github.com/the-edge-agent/tea/plugins/memory/store"

// Check validates items, which must have the same dimension, and returns their metadata
// as canonical JSON, "" for none. The error is a validation_error. It does not check the
// dimension of an existing collection.
func Check(collection string, items []store.VectorItem) (metadata []string, err error) {
	rows, err := prepare(collection, items)
	if err != nil {
		return nil, err
	}
	metadata = make([]string, len(rows))
	for i, r := range rows {
		if got, want := len(r.item.Embedding), len(items[0].Embedding); got != want {
			return nil, WrongDimension(collection, got, want)
		}
		metadata[i] = r.metadata
	}
	return metadata, nil
}

// FromRecord returns the item of the record of an existing item, with its metadata as
// canonical JSON, "" for none. The error of an invalid record is a validation_error.
func FromRecord(r store.Record) (item store.VectorItem, metadata string, err error) {
	row, err := prepareRecord(r)
	if err != nil {
		return store.VectorItem{}, "", err
	}
	return row.item, row.metadata, nil
}

// Named reports whether a collection can have the name.
func Named(collection string) bool { return named(collection) }

// Storable returns the valid ids.
func Storable(ids []string) []string { return storable(ids) }

// WrongDimension returns the validation_error of an embedding whose dimension differs
// from its collection's.
func WrongDimension(collection string, got, want int) error {
	return wrongDimension(collection, got, want)
}

// Encode returns an embedding as little-endian float32.
func Encode(embedding []float32) []byte { return toBytes(embedding) }

// Decode is the inverse of Encode.
func Decode(raw []byte) []float32 { return fromBytes(raw) }
