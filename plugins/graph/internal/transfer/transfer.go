// Package transfer writes graphs in formats of other programs, and reads them.
// Start with [NewWriter] and [Read].
package transfer

import (
	"errors"
	"fmt"
	"io"
	"path"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Writer writes one graph: the entities first, then the relations.
type Writer interface {
	Entity(e *store.Entity) error
	Relation(r *store.Relation) error
	// Close writes the end. It does not close the outputs.
	Close() error
}

// Sink receives the items that are read. It must not retain them.
type Sink struct {
	Entity   func(e *store.Entity) error
	Relation func(r *store.Relation) error
	// Note is called with a remark about input that was left out or changed in meaning.
	Note func(text string)
}

// Format is the name of a format.
type Format string

// The formats. CSV and Parquet have a file for entities and one for relations.
const (
	JSONL     Format = "jsonl"
	CSV       Format = "csv"
	Parquet   Format = "parquet"
	GraphML   Format = "graphml"
	Cytoscape Format = "cytoscape"
)

// Files returns the file names of a format in a folder; nil for a format with a
// single file.
func (f Format) Files() []string {
	if f != CSV && f != Parquet {
		return nil
	}
	return []string{"entities." + string(f), "relations." + string(f)}
}

// NewWriter returns a writer for a format. A format with two files needs two
// outputs.
func NewWriter(f Format, outputs ...io.Writer) Writer {
	switch f {
	case CSV:
		return newCSV(outputs[0], outputs[1])
	case Parquet:
		return newParquet(outputs[0], outputs[1])
	case GraphML:
		return newGraphML(outputs[0])
	case Cytoscape:
		return newCytoscape(outputs[0])
	}
	return newJSONL(outputs[0])
}

// Discard releases a writer's resources. It may be called after Close.
func Discard(w Writer) {
	if w, ok := w.(interface{ Discard() }); ok {
		w.Discard()
	}
}

// Input is a file to read. For Parquet, Reader must also be an io.ReaderAt, and Size
// must be the size of the file.
type Input struct {
	Name   string
	Reader io.Reader
	Size   int64
}

// at adds a place in the input to an error.
func at(place string, err error) error {
	var typed *tea.Error
	if !errors.As(err, &typed) {
		return fmt.Errorf("%s: %w", place, err)
	}
	e := *typed
	e.Message = place + ": " + typed.Message
	return &e
}

// Readable returns an error for a format that can only be written.
func (f Format) Readable() error {
	if f == Cytoscape {
		return tea.Errorf(tea.ValidationError, "the format %s is for pictures and cannot be imported; use jsonl, csv, parquet or graphml", f)
	}
	return nil
}

// Read reads a graph from files in a format. The error names the place in the input.
func Read(f Format, into Sink, inputs []Input) error {
	for _, in := range inputs {
		err := f.Readable()
		switch f {
		case JSONL:
			err = readJSONL(in.Reader, into)
		case CSV:
			err = readCSV(in, into)
		case Parquet:
			err = readParquet(in, into)
		case GraphML:
			err = readGraphML(in.Reader, into)
		}
		if err != nil && (len(inputs) > 1 || f.Files() != nil) {
			err = at(path.Base(in.Name), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
