package vectors

import "github.com/the-edge-agent/tea/plugins/memory/store"

// Check returns a validation_error for items that no backend stores, and their
// metadata as canonical JSON, "" for none.
func Check(collection string, items []store.VectorItem) (metadata []string, err error) {
	rows, err := prepare(collection, items)
	if err != nil {
		return nil, err
	}
	metadata = make([]string, len(rows))
	for i, r := range rows {
		metadata[i] = r.metadata
	}
	return metadata, nil
}

// FromRecord returns the item of a record that is not deleted, with its metadata
// as canonical JSON, "" for none. A record that cannot be stored is a
// validation_error.
func FromRecord(r store.Record) (item store.VectorItem, metadata string, err error) {
	row, err := prepareRecord(r)
	if err != nil {
		return store.VectorItem{}, "", err
	}
	return row.item, row.metadata, nil
}

// Named reports whether a collection can have the name.
func Named(collection string) bool { return named(collection) }

// Storable leaves out the ids that no item can have.
func Storable(ids []string) []string { return storable(ids) }

// WrongDimension returns the validation_error of an embedding of another
// dimension than its collection.
func WrongDimension(collection string, got, want int) error {
	return wrongDimension(collection, got, want)
}

// Encode returns an embedding as bytes.
func Encode(embedding []float32) []byte { return toBytes(embedding) }

// Decode returns the embedding of bytes.
func Decode(raw []byte) []float32 { return fromBytes(raw) }
