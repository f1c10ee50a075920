package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrNotFound is wrapped by the error for a missing object.
var ErrNotFound = errors.New("not found")

// ErrConflict is wrapped by the error of a Put whose Match does not hold.
var ErrConflict = errors.New("changed concurrently")

// Bucket is a bucket, or the part of it below a prefix. Its errors are *tea.Error,
// except those of a context, which are wrapped, and those that wrap ErrNotFound or
// ErrConflict. It is safe for concurrent use.
type Bucket struct {
	address Address
	driver  Driver
	client  *http.Client
	secrets []string
	tries   int
	exists  atomic.Bool // the bucket exists
}

// Open opens the bucket at an address such as s3://bucket/prefix. It does not call
// the service. An address whose scheme is not among schemes is a dependency_missing
// error. The caller closes the bucket.
func Open(ctx context.Context, address string, settings Settings, schemes ...Scheme) (*Bucket, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	for _, scheme := range schemes {
		for _, name := range scheme.Names {
			if name != a.Scheme {
				continue
			}
			client, err := newHTTP(settings)
			if err != nil {
				return nil, err
			}
			driver, err := scheme.Connect(ctx, Target{Bucket: a.Bucket, Settings: settings, HTTP: client})
			if err != nil {
				return nil, err
			}
			return &Bucket{address: a, driver: driver, client: client, secrets: settings.secrets(), tries: settings.Tries()}, nil
		}
	}
	return nil, tea.Errorf(tea.DependencyMissing, "this build has no object storage with the scheme %s://", a.Scheme)
}

// Close releases the connections.
func (b *Bucket) Close() error {
	b.client.CloseIdleConnections()
	return nil
}

// Address returns the address of the bucket.
func (b *Bucket) Address() Address { return b.address }

func (b *Bucket) key(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	key := b.address.Prefix + name
	if len(key) > maxName {
		return "", invalid("the name of an object must have at most %d bytes with the prefix of the bucket, not %d", maxName, len(key))
	}
	return key, nil
}

func (b *Bucket) object(o Object, key string) Object {
	o.Name, o.Modified = strings.TrimPrefix(key, b.address.Prefix), o.Modified.UTC()
	delete(o.Metadata, writeID)
	return o
}

// MaxConditional is the maximum size of an object in a Put with a Match.
const MaxConditional = 64 << 20

// writeID is the metadata key that identifies a conditional write.
const writeID = "teawrite"

// Put writes the data of r to an object, which appears atomically and is durable
// on return. An upload of any size needs the memory of a few parts. If r fails, Put
// returns its error and writes nothing.
//
// A Put with a Match takes at most MaxConditional bytes, because services differ in
// how they check conditions of multipart uploads. It is idempotent if a response is
// lost: it succeeds if the object is the one that it wrote. If another writer has
// replaced that object meanwhile, it reports a conflict.
func (b *Bucket) Put(ctx context.Context, name string, r io.Reader, o PutOptions) (Object, error) {
	key, err := b.key(name)
	if err != nil {
		return Object{}, err
	}
	id := ""
	if o.Match != "" {
		id = rand.Text()
		o.Metadata = maps.Clone(o.Metadata)
		if o.Metadata == nil {
			o.Metadata = map[string]string{}
		}
		o.Metadata[writeID] = id
	}
	source := &source{ctx: ctx, r: r, limit: math.MaxInt64}
	if o.Match != "" {
		source.limit = MaxConditional
	}
	written, err := b.driver.Put(ctx, key, source, o)
	switch {
	case source.err != nil:
		return Object{}, fmt.Errorf("write %s: %w", b.show(key), source.err)
	case err != nil && o.Match != "":
		return b.resolveOutcome(ctx, key, id, o.Match, err)
	case err != nil:
		return Object{}, b.failure(ctx, "write", key, err)
	}
	if o.Match != "" && o.Match != Absent && written.Version == o.Match {
		return Object{}, tea.Errorf(tea.InternalError, "write %s: the version of the object did not change", b.show(key))
	}
	written.Size = source.size
	return b.object(written, key), nil
}

// resolveOutcome determines the outcome of a conditional write that the service refused or did
// not answer: a response may be lost, and a service that refuses a large write may close
// the connection before its response is read.
func (b *Bucket) resolveOutcome(ctx context.Context, key, id, match string, err error) (Object, error) {
	f := b.driver.Fault(err)
	silent := f.Status == 0 && f.Code == "" && !errors.As(err, new(*tea.Error))
	if silent || isConflict(f) {
		switch now, statErr := b.driver.Stat(ctx, key); {
		case statErr == nil && now.Metadata[writeID] == id:
			return b.object(now, key), nil
		case statErr == nil && silent && (match == Absent || now.Version != match):
			return Object{}, fmt.Errorf("write %s: %w", b.show(key), ErrConflict)
		case statErr != nil && !silent && b.driver.Fault(statErr).Status != http.StatusNotFound:
			err = statErr // it is unknown which write was the first
		}
	}
	return Object{}, b.failure(ctx, "write", key, err)
}

// source counts the bytes of a reader and keeps its error, which a client would wrap or
// retry.
type source struct {
	ctx         context.Context //nolint:containedctx // it lives for one upload
	r           io.Reader
	size, limit int64
	err         error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	if s.size += int64(n); s.size > s.limit {
		s.err = invalid("a conditional write takes at most %d bytes", MaxConditional)
		return 0, s.err
	}
	return n, err
}

// Stat describes an object.
func (b *Bucket) Stat(ctx context.Context, name string) (Object, error) {
	key, err := b.key(name)
	if err != nil {
		return Object{}, err
	}
	o, err := b.driver.Stat(ctx, key)
	if err != nil {
		return Object{}, b.failure(ctx, "read", key, err)
	}
	return b.object(o, key), nil
}

// Delete removes an object. It is not an error if the object does not exist.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	if err := b.driver.Delete(ctx, key); err != nil {
		if err = b.failure(ctx, "delete", key, err); !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// Copy copies an object within the bucket, without transferring it, and replaces an
// existing one.
func (b *Bucket) Copy(ctx context.Context, from, to string) error {
	fromKey, err := b.key(from)
	if err != nil {
		return err
	}
	toKey, err := b.key(to)
	if err != nil {
		return err
	}
	if err := b.driver.Copy(ctx, fromKey, toKey); err != nil {
		return b.failure(ctx, "copy", fromKey, err)
	}
	return nil
}

// List returns the objects whose names begin with prefix, in the order of their
// names.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for token := ""; ; {
			page, next, err := b.driver.List(ctx, b.address.Prefix+prefix, token)
			if err != nil {
				yield(Object{}, b.failure(ctx, "list", b.address.Prefix+prefix, err))
				return
			}
			for _, o := range page {
				if !yield(b.object(o, o.Name), nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// MaxSigned is the maximum lifetime of a signed address.
const MaxSigned = 7 * 24 * time.Hour

// Sign returns an address with which anyone can read (GET) or write (PUT) an object
// until it expires, after at most MaxSigned. It needs credentials with a key: for some
// services, credentials of a machine or a user's login are a permission_denied error.
func (b *Bucket) Sign(ctx context.Context, method, name string, expires time.Duration) (string, error) {
	key, err := b.key(name)
	if err != nil {
		return "", err
	}
	if method != http.MethodGet && method != http.MethodPut {
		return "", invalid("an address can be signed for GET or PUT, not for %s", method)
	}
	if expires < time.Second || expires > MaxSigned {
		return "", invalid("a signed address is valid for 1s to %s, not %s", MaxSigned, expires)
	}
	address, err := b.driver.Sign(ctx, method, key, expires)
	if err != nil {
		return "", b.failure(ctx, "sign", key, err)
	}
	return address, nil
}

func (b *Bucket) show(key string) string {
	return b.address.Scheme + "://" + b.address.Bucket + "/" + key
}
