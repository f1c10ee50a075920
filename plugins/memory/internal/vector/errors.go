package vector

import "errors"

// What Put, Delete, Search and Flush refuse. They come wrapped with the
// numbers that belong to them; a refused call has changed nothing.
var (
	// ErrDimension says that a vector has another length than the collection.
	ErrDimension = errors.New("wrong dimension")
	// ErrNotFinite says that a vector has an element that is NaN or infinite.
	ErrNotFinite = errors.New("not a finite number")
	// ErrZero says that a vector to be stored has no direction. The owner of
	// such a row calls Delete with the same sequence number instead.
	ErrZero = errors.New("vector of zeros")
	// ErrSequence says that a change is not newer than the watermark: the
	// index has it already, or two changes were told in the wrong order.
	ErrSequence = errors.New("sequence number not after the watermark")
	// ErrFull says that the index holds as many vectors as it can address.
	ErrFull = errors.New("index is full")
	// ErrClosed says that the index was closed.
	ErrClosed = errors.New("index is closed")
)

// Why a companion file was not used; see [Index.Discarded]. A missing file
// gives an error that wraps [io/fs.ErrNotExist].
var (
	// ErrCorrupt says that the file is damaged or no companion file at all.
	ErrCorrupt = errors.New("companion file is damaged")
	// ErrVersion says that a newer program wrote the file.
	ErrVersion = errors.New("companion file has a newer format")
	// ErrOther says that the file belongs to a collection with another
	// dimension or another owner.
	ErrOther = errors.New("companion file belongs to another collection")
)
