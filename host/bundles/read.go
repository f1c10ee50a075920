package bundles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"syscall"

	"aead.dev/minisign"
	"github.com/the-edge-agent/tea/host/internal/digest"
)

// Bundle is an open bundle file. The caller closes it. It is not safe for
// concurrent use.
type Bundle struct {
	// Index describes the contents.
	Index *Index
	// IndexBytes is the encoding of the index in the file.
	IndexBytes []byte
	// SHA256 is the digest of the whole file, in hexadecimal.
	SHA256 string

	path   string
	file   *os.File
	size   int64
	hashed *minisign.Reader // has read the whole file
}

// DamagedError reports a file that is not an intact bundle.
type DamagedError struct{ Path, Reason string }

func (e *DamagedError) Error() string { return e.Path + ": " + e.Reason }

// Open opens a bundle file and checks its integrity: every byte is covered by
// the digest at the end. The contents are checked by [Bundle.Each].
func Open(path string) (*Bundle, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block
	if err != nil {
		return nil, err
	}
	b := &Bundle{path: path, file: f}
	if err := b.open(); err != nil {
		f.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bundle) open() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	if b.size = info.Size(); !info.Mode().IsRegular() || b.size < trailerSize {
		return b.damaged("it is not a bundle")
	}
	head := make([]byte, len(indexName)+1)
	if _, err := b.file.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head) != indexName+"\x00" {
		return b.damaged("it is not a bundle")
	}
	b.hashed = minisign.NewReader(io.NewSectionReader(b.file, 0, b.size))
	sum := sha256.New()
	if _, err := io.CopyN(sum, b.hashed, b.size-trailerSize); err != nil {
		return err
	}
	want, err := trailer(sum.Sum(nil))
	if err != nil {
		return err
	}
	got := make([]byte, trailerSize)
	if _, err := io.ReadFull(b.hashed, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return b.damaged("it is incomplete, or was changed after it was packed")
	}
	sum.Write(got)
	b.SHA256 = hex.EncodeToString(sum.Sum(nil))
	archive := tar.NewReader(io.NewSectionReader(b.file, 0, b.size-trailerSize))
	if b.IndexBytes, err = b.readIndex(archive); err != nil {
		return err
	}
	if b.Index, err = parseIndex(b.IndexBytes); err != nil {
		return b.damaged(err.Error())
	}
	return nil
}

// Close closes the file.
func (b *Bundle) Close() error { return b.file.Close() }

// Copy writes the file. It fails if the bytes have changed since [Open].
func (b *Bundle) Copy(w io.Writer) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(b.file, 0, b.size)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != b.SHA256 {
		return b.damaged("it changed while it was read")
	}
	return nil
}

func (b *Bundle) damaged(reason string) error { return &DamagedError{b.path, reason} }

// next reads the header of the next entry, which must have the name.
func (b *Bundle) next(archive *tar.Reader, name string) (*tar.Header, error) {
	h, err := archive.Next()
	if errors.Is(err, io.EOF) {
		return nil, b.damaged("the entry " + name + " is missing")
	}
	if err != nil {
		return nil, b.damaged(err.Error())
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || len(h.PAXRecords) > 0 {
		return nil, b.damaged(fmt.Sprintf("found the entry %q; expected the file %s", h.Name, name))
	}
	return h, nil
}

func (b *Bundle) readIndex(archive *tar.Reader) ([]byte, error) {
	h, err := b.next(archive, indexName)
	if err != nil {
		return nil, err
	}
	if h.Size > maxIndex {
		return nil, b.damaged(fmt.Sprintf("%s has %d bytes, at most %d are allowed", indexName, h.Size, maxIndex))
	}
	data, err := io.ReadAll(io.LimitReader(archive, maxIndex))
	if err != nil {
		return nil, b.damaged(err.Error())
	}
	return data, nil
}

// Each calls visit for each distinct content of the bundle, with one of the
// files that have it. Reading from r fails at the end if the content does not
// match the digest and the size in the index. Contents that visit does not read
// are neither decompressed nor checked.
func (b *Bundle) Each(visit func(f File, r io.Reader) error) error {
	blobs, err := b.Index.blobs()
	if err != nil {
		return b.damaged(err.Error())
	}
	archive := tar.NewReader(io.NewSectionReader(b.file, 0, b.size-trailerSize))
	again, err := b.readIndex(archive)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, b.IndexBytes) {
		return b.damaged("it changed while it was read")
	}
	for _, f := range blobs {
		h, err := b.next(archive, blobName(f))
		if err != nil {
			return err
		}
		if f.Size > 1<<20 && f.Size/maxRatio > h.Size {
			return b.damaged(fmt.Sprintf("%s expands %d bytes to %d, more than %d times", f.Path, h.Size, f.Size, maxRatio))
		}
		if err := visit(f, &content{bundle: b, file: f, packed: archive, sum: sha256.New()}); err != nil {
			return err
		}
	}
	if h, err := archive.Next(); !errors.Is(err, io.EOF) {
		if err != nil {
			return b.damaged(err.Error())
		}
		return b.damaged(fmt.Sprintf("found the entry %q, which the index does not list", h.Name))
	}
	return nil
}

// Check verifies all contents.
func (b *Bundle) Check() error {
	return b.Each(func(_ File, r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	})
}

// content decompresses a file and checks it at its end.
type content struct {
	bundle *Bundle
	file   File
	packed io.Reader
	plain  io.Reader
	read   int64
	sum    hash.Hash
}

// Read returns at most one byte more than the index announces.
func (c *content) Read(p []byte) (int, error) {
	if c.plain == nil {
		z, err := gzip.NewReader(c.packed)
		if err != nil {
			return 0, c.damaged(err.Error())
		}
		c.plain = io.LimitReader(z, c.file.Size+1)
	}
	n, err := c.plain.Read(p)
	c.sum.Write(p[:n])
	c.read += int64(n)
	switch {
	case c.read > c.file.Size:
		return 0, c.damaged(fmt.Sprintf("its content is larger than %d bytes", c.file.Size))
	case errors.Is(err, io.EOF):
		if c.read < c.file.Size || hex.EncodeToString(c.sum.Sum(nil)) != c.file.SHA256 {
			return 0, c.damaged("its content does not match the index")
		}
	case err != nil:
		return 0, c.damaged(err.Error())
	}
	return n, err
}

func (c *content) damaged(reason string) error {
	return c.bundle.damaged(c.file.Path + ": " + strings.TrimPrefix(reason, "gzip: "))
}

// IndexSHA256 is the digest of the index, which a signature's trusted comment
// contains.
func (b *Bundle) IndexSHA256() string { return digest.Of(b.IndexBytes) }
