package tabular

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// settle decides whether the n rows that the transaction added after a number
// stay in the database or become a file. size is their size in bytes, negative if
// unknown.
func (w *writing) settle(ctx context.Context, before, n int64, size int) error {
	after := before + n
	if w.s.dialect() == store.DuckDB {
		if size < 0 && n < int64(w.s.o.InlineBytes) {
			var err error
			if size, err = w.measure(ctx, before); err != nil {
				return err
			}
		}
		if size < 0 || size >= w.s.o.InlineBytes {
			return w.moveToFile(ctx, before, after, n)
		}
	}
	added := n
	if w.s.dialect() == store.SQLite {
		added = w.result.Updated + w.result.Deleted
	}
	w.tx.AfterCommit(func() { w.t.commit(after, func(l *load) { l.rows += added }) })
	return nil
}

func (w *writing) measure(ctx context.Context, before int64) (int, error) {
	lengths := make([]string, len(w.t.columns))
	for i, c := range w.t.columns {
		lengths[i] = "coalesce(strlen(CAST(" + quote(c.Name) + " AS VARCHAR)), 0)"
	}
	size, err := store.Int(w.tx.Query(ctx, "SELECT CAST(coalesce(sum("+strings.Join(lengths, " + ")+"), 0) AS BIGINT) FROM "+w.t.log()+" WHERE _tea_seq > ?", before))
	return int(size), err
}

// moveToFile moves the rows after a number into a file.
func (w *writing) moveToFile(ctx context.Context, before, after, n int64) error {
	w.s.reached("rows appended")
	query := fmt.Sprintf("SELECT %s FROM %s WHERE _tea_seq > %d", w.t.allColumns(), w.t.log(), before)
	f, err := w.s.writeFile(ctx, w.t, query, func(statement string) error {
		_, err := w.tx.Exec(ctx, statement)
		return err
	})
	if err != nil {
		return err
	}
	f.Rows, f.FirstVersion, f.LastVersion = n, before+1, after
	w.file, w.result.File, w.result.Bytes = w.s.path(f.Path), f.Path, f.Size
	if _, err := w.tx.Exec(ctx, "DELETE FROM "+w.t.log()+" WHERE _tea_seq > ?", before); err != nil {
		return err
	}
	if err := w.s.o.Catalog.SwapIn(ctx, w.tx, []catalog.File{f}, nil); err != nil {
		return err
	}
	if err := w.s.refresh(ctx, w.tx, w.t); err != nil {
		return err
	}
	w.s.reached("file in the catalog")
	w.tx.AfterCommit(func() { w.t.commit(after, func(l *load) { l.add(f) }) })
	return nil
}

// writeFile writes the result of a query to a new file of the table. run
// executes the statement. The file is durable on return.
func (s *Tables) writeFile(ctx context.Context, t *table, query string, run func(statement string) error) (f catalog.File, err error) {
	f = catalog.File{Table: t.name, Path: path.Join(t.name, strings.ToLower(rand.Text())+".parquet"), Format: "parquet"}
	final := s.path(f.Path)
	if err := s.makeDir(filepath.Dir(final)); err != nil {
		return f, err
	}
	unfinished := final + ".unfinished"
	err = run("COPY (" + query + ") TO " + literal(unfinished) + " (FORMAT parquet, COMPRESSION zstd)")
	s.reached("file written")
	if err == nil {
		f.ContentHash, f.Size, err = sealed(unfinished)
	}
	if err == nil {
		err = os.Rename(unfinished, final)
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(final))
	}
	s.reached("file renamed")
	if err != nil {
		if gone := os.Remove(unfinished); gone != nil && !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return f, fmt.Errorf("write a file of table %s: %w", t.entry.Name, err)
	}
	return f, ctx.Err()
}

func (s *Tables) makeDir(dir string) error {
	err := os.Mkdir(dir, dirMode)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("create the folder of a table: %w", err)
	}
	return atomicfile.SyncDir(s.o.Dir)
}

// sealed makes a file private, syncs it and returns its hash and size.
func sealed(name string) (hash string, size int64, err error) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.New()
	if size, err = io.Copy(sum, file); err == nil {
		// DuckDB creates files with the umask's permissions.
		err = file.Chmod(fileMode)
	}
	if err == nil {
		err = file.Sync()
	}
	return hex.EncodeToString(sum.Sum(nil)), size, errors.Join(err, file.Close())
}
