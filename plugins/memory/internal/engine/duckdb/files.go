//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// filesMemory bounds the memory, in addition to the memory for the largest row;
// the rest is spilled into the folder.
const filesMemory = 128 << 20

// Copy writes the result of a query to a Parquet file and returns its number of
// rows. The query can only read the files of dir, the folder of the file. largest
// is the size of the largest row.
func Copy(ctx context.Context, dir, file, query string, largest int64) (rows int64, err error) {
	limits := engine.Limits{Threads: 1, MemoryBytes: filesMemory + 8*largest, SpillDir: filepath.Join(dir, "spill"), AllowedDir: dir}
	db, err := open(ctx, "", limits, "READ_WRITE", nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	result, err := db.ExecContext(ctx, "COPY ("+query+") TO "+literal(filepath.Join(dir, file))+" (FORMAT parquet, COMPRESSION zstd)")
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Texts calls fn with the values of a query's only column. The query can only
// read the files of dir.
func Texts(ctx context.Context, dir, query string, fn func(string)) (err error) {
	limits := engine.Limits{Threads: 1, MemoryBytes: filesMemory, SpillDir: filepath.Join(dir, "spill"), AllowedDir: dir}
	db, err := open(ctx, "", limits, "READ_WRITE", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var text string
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	return store.Scan(rows, nil, func() { fn(text) }, &text)
}
