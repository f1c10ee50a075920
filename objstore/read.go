package objstore

import (
	"context"
	"crypto/md5" //nolint:gosec // what services store
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// progressBytes is the number of bytes that a connection must deliver to reset the count of
// failures, so that a download that hardly moves ends.
const progressBytes = 64 << 10

// All is the length of a Get that reads the rest.
const All = -1

var resumption = backoff.Policy{Base: 100 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2, Jitter: 0.5}

// Get opens an object for reading from an offset; length is All or a number of bytes.
// The caller closes the reader before ctx ends. If the connection breaks, the rest is
// read on another one, unless the object has changed meanwhile.
func (b *Bucket) Get(ctx context.Context, name string, offset, length int64) (Object, io.ReadCloser, error) {
	key, err := b.key(name)
	if err != nil {
		return Object{}, nil, err
	}
	if offset < 0 || length < All {
		return Object{}, nil, invalid("a range of an object begins at 0 or later")
	}
	o, body, err := b.open(ctx, key, offset, length)
	if err != nil {
		return Object{}, nil, b.failure(ctx, "read", key, err)
	}
	if o.Size < 0 {
		return Object{}, nil, errors.Join(tea.Errorf(tea.ConnectionError, "read %s: the response does not include the size of the object", b.show(key)), body.Close())
	}
	r := &reader{ctx: ctx, bucket: b, key: key, version: o.Version, body: body, offset: offset, left: max(o.Size-offset, 0)}
	if length >= 0 {
		r.left = min(r.left, length)
	}
	if r.left == o.Size {
		r.sum, r.want = newSum(o.Checksum)
	}
	return b.object(o, key), r, nil
}

// open opens a range, which may be empty.
func (b *Bucket) open(ctx context.Context, key string, offset, length int64) (o Object, body io.ReadCloser, err error) {
	if length != 0 {
		o, body, err = b.driver.Read(ctx, key, offset, length, "")
		if err == nil || b.driver.Fault(err).Status != http.StatusRequestedRangeNotSatisfiable {
			return o, body, err
		}
	}
	o, err = b.driver.Stat(ctx, key)
	return o, http.NoBody, err
}

// reader reads a part of an object, with several requests if connections break.
type reader struct {
	ctx          context.Context //nolint:containedctx // it lives for one download
	bucket       *Bucket
	key, version string
	body         io.ReadCloser
	offset, left int64
	failures     int // since a connection delivered progressBytes
	moved        int // bytes of the current connection
	sum          hash.Hash
	want         string // the sum of the whole object, in Base64
	err          error
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.left == 0:
			r.err = io.EOF
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
		r.offset, r.left = r.offset+int64(n), r.left-int64(n)
		if r.moved += n; r.moved >= progressBytes {
			r.failures = 0
		}
		if n > 0 {
			if r.sum != nil {
				_, _ = r.sum.Write(p[:n]) // a hash cannot fail
			}
			if r.left == 0 {
				r.err = r.verify()
			}
		}
		if err != nil && r.left > 0 {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			r.err = r.again(err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// again opens the rest of the object after a failure.
func (r *reader) again(err error) error {
	_ = r.body.Close()
	r.body, r.moved = http.NoBody, 0
	for {
		if r.failures++; r.failures >= r.bucket.tries || r.ctx.Err() != nil {
			return r.bucket.failure(r.ctx, "read", r.key, err)
		}
		if sleepErr := backoff.Sleep(r.ctx, resumption.Wait(r.failures)); sleepErr != nil {
			return r.bucket.failure(r.ctx, "read", r.key, err)
		}
		_, body, openErr := r.bucket.driver.Read(r.ctx, r.key, r.offset, r.left, r.version)
		if openErr == nil {
			r.body = body
			return nil
		}
		if err = openErr; r.bucket.driver.Fault(err).Status != 0 {
			return r.bucket.failure(r.ctx, "read", r.key, err)
		}
	}
}

func (r *reader) verify() error {
	if r.sum == nil || base64.StdEncoding.EncodeToString(r.sum.Sum(nil)) == r.want {
		return io.EOF
	}
	return tea.Errorf(tea.InternalError, "read %s: the content is damaged: its checksum does not match the checksum that the service stored", r.bucket.show(r.key))
}

// newSum returns the hash for a checksum; nil if the algorithm is unknown.
func newSum(checksum string) (h hash.Hash, want string) {
	kind, want, _ := strings.Cut(checksum, ":")
	switch kind {
	case "crc32c":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli)), want
	case "crc32":
		return crc32.NewIEEE(), want
	case "crc64nvme":
		return crc64.New(crc64.MakeTable(crc64NVMe)), want
	case "md5":
		return md5.New(), want //nolint:gosec // it detects damage, not attacks
	case "sha256":
		return sha256.New(), want
	}
	return nil, ""
}

// crc64NVMe is the reversed polynomial.
const crc64NVMe uint64 = 0x9a6c9329ac4bc9b5

func (r *reader) Close() error {
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	return r.body.Close()
}
