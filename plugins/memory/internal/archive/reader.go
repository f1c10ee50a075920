package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// maxEntry bounds an entry, which is read into memory.
	maxEntry = 256 << 20
	// ImportKind is the kind of the documents of imports that are not complete.
	// Their ids are the SHA-256 of the archives.
	ImportKind = "tea_import"
)

var names = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(records/[0-9]{6,9}\.jsonl|contents/[0-9a-f]{64}|tables/[A-Za-z_][A-Za-z0-9_]{0,62}(\.json|/[0-9]{6,9}\.jsonl))$`)
})

// visitor receives the parts of an archive in order.
type visitor struct {
	content func(ctx context.Context, sha string, data []byte) error
	records func(ctx context.Context, records []store.Record) error
	table   func(ctx context.Context, table Table) error
	rows    func(ctx context.Context, table string, rows []json.RawMessage) error
}

// walk reads an archive. An error of the archive is a validation_error.
func walk(ctx context.Context, r io.Reader, v visitor) (end, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return end{}, damaged("it is not a compressed tar file: %w", err)
	}
	packed.Multistream(false)
	files := tar.NewReader(packed)
	sum := sha256.New()
	for n := int64(0); ; n++ {
		name, data, err := next(ctx, files)
		if err != nil {
			return end{}, err
		}
		switch {
		case n == 0:
			if err := checkHeader(name, data); err != nil {
				return end{}, err
			}
		case name == endName:
			return checkEnd(data, n, hex.EncodeToString(sum.Sum(nil)), files, packed)
		case !names().MatchString(name):
			return end{}, damaged("%q is not a valid name of an entry", name)
		default:
			if err := v.visit(ctx, name, data); err != nil {
				return end{}, err
			}
		}
		addTo(sum, name, data)
	}
}

func damaged(message string, args ...any) error {
	return tea.Errorf(tea.ValidationError, "the archive is damaged: "+message, args...)
}

func next(ctx context.Context, files *tar.Reader) (name string, data []byte, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	head, err := files.Next()
	switch {
	case errors.Is(err, io.EOF):
		return "", nil, damaged("its end is missing")
	case err != nil:
		return "", nil, damaged("%w", err)
	case head.Typeflag != tar.TypeReg:
		return "", nil, damaged("%q is not a regular file", head.Name)
	case head.Size > maxEntry:
		return "", nil, damaged("%q is too large: %d bytes (limit %d)", head.Name, head.Size, int64(maxEntry))
	}
	// The size in the header is not trusted: the buffer grows with the data that is read.
	var b bytes.Buffer
	if _, err := io.Copy(&b, files); err != nil {
		return "", nil, damaged("%s: %w", head.Name, err)
	}
	return head.Name, b.Bytes(), nil
}

func checkHeader(name string, data []byte) error {
	var h header
	if name != headerName || json.Unmarshal(data, &h) != nil || h.Format != format || h.Version < 1 {
		return tea.Errorf(tea.ValidationError, "the file is not an archive of a memory")
	}
	if h.Version > version {
		return tea.Errorf(tea.DependencyMissing, "the archive was written by a newer version (format %d, this one supports %d); install that version of the memory plugin", h.Version, version)
	}
	return nil
}

// checkEnd checks the last entry and that nothing follows.
func checkEnd(data []byte, entries int64, sum string, files *tar.Reader, packed io.Reader) (end, error) {
	var e end
	if err := json.Unmarshal(data, &e); err != nil {
		return end{}, damaged("%s: %w", endName, err)
	}
	if e.Entries != entries || e.SHA256 != sum {
		return end{}, damaged("its checksum does not match")
	}
	if _, err := files.Next(); !errors.Is(err, io.EOF) {
		return end{}, damaged("there is data after its end")
	}
	// Reading to the end makes gzip check its checksum.
	if n, err := io.Copy(io.Discard, io.LimitReader(packed, maxEntry)); err != nil {
		return end{}, damaged("%w", err)
	} else if n == maxEntry {
		return end{}, damaged("there is data after its end")
	}
	return e, nil
}

func (v visitor) visit(ctx context.Context, name string, data []byte) error {
	kind, rest, _ := strings.Cut(name, "/")
	table, _, isPage := strings.Cut(rest, "/")
	switch {
	case kind == "contents":
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != rest {
			return damaged("the content of %s does not match its hash", name)
		}
		return v.content(ctx, rest, data)
	case kind == "records":
		records, err := decodeLines[store.Record](name, data)
		if err != nil {
			return err
		}
		return v.records(ctx, records)
	case isPage:
		rows, err := decodeLines[json.RawMessage](name, data)
		if err != nil {
			return err
		}
		return v.rows(ctx, table, rows)
	}
	var t Table
	if err := json.Unmarshal(data, &t); err != nil || t.Name+".json" != rest {
		return damaged("%s is not the definition of a table", name)
	}
	return v.table(ctx, t)
}

func decodeLines[T any](name string, data []byte) ([]T, error) {
	var all []T
	for line := range bytes.Lines(data) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, damaged("line %d of %s: %w", len(all)+1, name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Check reads an archive and returns its summary. id is the SHA-256 of the file.
func Check(ctx context.Context, r io.Reader) (summary Summary, id string, err error) {
	sum := sha256.New()
	from := bufio.NewReader(io.TeeReader(r, sum)) // a ByteReader, so that gzip does not read beyond its end
	e, err := walk(ctx, from, visitor{
		content: func(context.Context, string, []byte) error { return nil },
		records: func(context.Context, []store.Record) error { return nil },
		table:   func(context.Context, Table) error { return nil },
		rows:    func(context.Context, string, []json.RawMessage) error { return nil },
	})
	if err != nil {
		return Summary{}, "", err
	}
	if n, err := io.Copy(io.Discard, from); err != nil {
		return Summary{}, "", fmt.Errorf("read the archive: %w", err)
	} else if n > 0 {
		return Summary{}, "", damaged("there is data after its end")
	}
	return e.Summary, hex.EncodeToString(sum.Sum(nil)), nil
}
