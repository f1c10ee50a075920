package graph

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/objstore"
	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

// Option adds optional features to the bundle.
type Option func(*options)

type options struct{ services []Objects }

// Objects is a service for object storage.
type Objects struct {
	// Schemes are the schemes of its addresses, and Env the environment variables that
	// it reads.
	Schemes, Env []string
	// Open opens the bucket at an address. It does not call the service.
	Open func(ctx context.Context, address string, settings objstore.Settings) (Bucket, error)
}

// Bucket is the part of [objstore.Bucket] that the bundle uses. It is an interface so that
// a build without services does not link the client.
type Bucket interface {
	Address() objstore.Address
	Stat(ctx context.Context, name string) (objstore.Object, error)
	Get(ctx context.Context, name string, offset, length int64) (objstore.Object, io.ReadCloser, error)
	Put(ctx context.Context, name string, r io.Reader, o objstore.PutOptions) (objstore.Object, error)
	List(ctx context.Context, prefix string) iter.Seq2[objstore.Object, error]
	Close() error
}

// WithObjects makes addresses of object storage valid for settings.graph.storage. The
// services are in the packages of plugins/graph/cloud.
func WithObjects(s Objects) Option {
	return func(o *options) { o.services = append(o.services, s) }
}

// env are the environment variables of the object storage.
func (o *options) env() (all []string) {
	for _, s := range o.services {
		all = append(all, s.Env...)
	}
	return all
}

// cloudPackages are the packages of plugins/graph/cloud by scheme.
var cloudPackages = map[string]string{"s3": "s3", "gs": "gcs", "azblob": "azure", "az": "azure"}

// service returns the service of an address. This build must include it.
func (o *options) service(what, scheme string) (Objects, error) {
	for _, s := range o.services {
		if slices.Contains(s.Schemes, scheme) {
			return s, nil
		}
	}
	if name, ok := cloudPackages[scheme]; ok {
		return Objects{}, tea.Errorf(tea.DependencyMissing, "%s: this build of the graph plugin does not include object storage at %s://: install tea-plugin-graph-cloud in its place (scripts/build cloud), or link it into a program with `tea build --with graph[%s]`", what, scheme, name)
	}
	return Objects{}, tea.Errorf(tea.ValidationError, "%s: addresses that begin with %s:// are not supported; use file://, s3://, gs:// or azblob://, or https:// to import", what, scheme)
}

// check checks settings.graph.storage.
func (o *options) check(storage string) error {
	if storage == "" {
		return nil
	}
	if isWeb(storage) {
		_, err := webAddress(storage)
		return err
	}
	a, err := objstore.ParseAddress(storage)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "settings.graph.storage: %s", tea.AsError(err).Message)
	}
	_, err = o.service("settings.graph.storage", a.Scheme)
	return err
}

// storage is the place of exports and imports with addresses, below
// settings.graph.storage.
type storage struct {
	options  *options
	settings Settings
}

// objects returns the bucket and the names of the objects of a format.
func (s storage) objects(ctx context.Context, given string, format transfer.Format) (Bucket, []string, error) {
	// Check the scheme first: file:///x does not lack a bucket.
	scheme, _, _ := strings.Cut(given, "://")
	service, err := s.options.service("path "+given, scheme)
	if err != nil {
		return nil, nil, err
	}
	a, err := objstore.ParseAddress(given)
	if err != nil {
		return nil, nil, tea.Errorf(tea.ValidationError, "path: %s", tea.AsError(err).Message)
	}
	if s.settings.Storage == "" {
		return nil, nil, tea.Errorf(tea.PermissionDenied, "%s is not below settings.graph.storage, which is not set; set it to %s://%s/ to allow the addresses of this bucket", given, a.Scheme, a.Bucket)
	}
	if isWeb(s.settings.Storage) {
		return nil, nil, tea.Errorf(tea.PermissionDenied, "%s is not below settings.graph.storage, %s", given, s.settings.Storage)
	}
	root, err := objstore.ParseAddress(s.settings.Storage)
	if err != nil {
		return nil, nil, err
	}
	if slices.Contains(service.Schemes, root.Scheme) {
		a.Scheme = root.Scheme // schemes may have synonyms
	}
	if !root.Contains(a) {
		return nil, nil, tea.Errorf(tea.PermissionDenied, "%s is not below settings.graph.storage, %s", given, root)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(a.Prefix, root.Prefix), "/")
	names := format.Files()
	switch {
	case names == nil && name == "":
		return nil, nil, tea.Errorf(tea.ValidationError, "%s does not name a file", given)
	case names == nil:
		names = []string{name}
	case name != "":
		for i := range names {
			names[i] = name + "/" + names[i]
		}
	}
	bucket, err := service.Open(ctx, root.String(), s.settings.StorageOptions)
	return bucket, names, err
}

// upload is an object that is being written.
type upload struct {
	*bufio.Writer
	pipe *io.PipeWriter
	done chan error
}

// write streams objects to the storage. They appear one after the other when all are
// complete.
func (s storage) write(ctx context.Context, given string, format transfer.Format, write func([]io.Writer) error) (addresses []string, err error) {
	bucket, names, err := s.objects(ctx, given, format)
	if err != nil {
		return nil, err
	}
	defer func() { _ = bucket.Close() }()
	var uploads []*upload
	var outputs []io.Writer
	for _, name := range names {
		r, w := io.Pipe()
		u := &upload{Writer: bufio.NewWriterSize(w, 1<<16), pipe: w, done: make(chan error, 1)}
		go func() {
			_, err := bucket.Put(ctx, name, r, objstore.PutOptions{})
			_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // unblocks a writer without a reader
			u.done <- err
		}()
		uploads, outputs = append(uploads, u), append(outputs, u)
		addresses = append(addresses, bucket.Address().String()+name)
	}
	err = write(outputs)
	for _, u := range slices.Backward(uploads) {
		if err == nil {
			err = u.Flush()
		}
		_ = u.pipe.CloseWithError(err) // nil ends the object
		if failed := <-u.done; failed != nil && (err == nil || !errors.Is(failed, err)) {
			err = failed
		}
	}
	if err != nil {
		return nil, objectError(err)
	}
	return addresses, nil
}

// objectError adds a type to untyped errors of objstore.
func objectError(err error) error {
	var typed *tea.Error
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, objstore.ErrNotFound):
		return tea.Errorf(tea.NotFound, "%w", err)
	}
	return err
}

// open opens objects for reading. Contents are streamed, except for a format that needs
// random access: they are copied to a temporary file.
func (s storage) open(ctx context.Context, given string, format transfer.Format) (_ *inputs, err error) {
	bucket, names, err := s.sources(ctx, given, format)
	if err != nil {
		return nil, err
	}
	in := &inputs{}
	in.closing(bucket.Close)
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	for _, name := range names {
		if _, err := bucket.Stat(ctx, name); err != nil {
			return nil, objectError(err)
		}
		o := &object{ctx: ctx, bucket: bucket, name: name}
		if err := in.addStream(given, name, format, o, o.close); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// addStream adds a file that is read sequentially. If the format needs random access, the
// file is copied to a temporary file.
func (in *inputs) addStream(given, name string, format transfer.Format, r io.Reader, closer func() error) error {
	if format != transfer.Parquet {
		in.add(transfer.Input{Name: name, Reader: r}, closer)
		return nil
	}
	in.closing(closer)
	file, err := os.CreateTemp("", "tea-graph-*")
	if err != nil {
		return fileError("import "+given, err)
	}
	in.closing(func() error { return errors.Join(file.Close(), os.Remove(file.Name())) })
	size, err := io.Copy(file, r)
	if err != nil {
		return fileError("import "+given, objectError(err))
	}
	in.files = append(in.files, transfer.Input{Name: name, Reader: file, Size: size})
	return nil
}

// sources returns the bucket and the names of the objects that an address names: the
// objects of a folder in the format, one object, or the matches of a pattern.
func (s storage) sources(ctx context.Context, given string, format transfer.Format) (Bucket, []string, error) {
	if scheme, rest, _ := strings.Cut(given, "://"); isPattern(rest) {
		at := strings.LastIndexByte(rest[:strings.IndexAny(rest, "*?[")], '/') + 1
		if at == 0 {
			return nil, nil, tea.Errorf(tea.ValidationError, "%s: a pattern cannot match several buckets; name one", given)
		}
		return s.matching(ctx, scheme+"://"+rest[:at], rest[at:], format)
	}
	if !isTable(given, format) {
		return s.objects(ctx, given, format)
	}
	bucket, names, err := s.objects(ctx, given, "")
	if err != nil {
		return nil, nil, err
	}
	if _, err := bucket.Stat(ctx, names[0]); errors.Is(err, objstore.ErrNotFound) { // a folder may be named like a file
		return s.objects(ctx, given, format)
	}
	return bucket, names, nil
}

// matching returns the objects below an address whose names match a pattern.
func (s storage) matching(ctx context.Context, below, pattern string, format transfer.Format) (Bucket, []string, error) {
	if err := checkPattern(pattern, format); err != nil {
		return nil, nil, err
	}
	// x stands for any object in the folder of this address.
	bucket, names, err := s.objects(ctx, below+"x", "")
	if err != nil {
		return nil, nil, err
	}
	prefix := strings.TrimSuffix(names[0], "x")
	var found []string
	for o, err := range bucket.List(ctx, prefix) {
		if err != nil {
			return nil, nil, errors.Join(objectError(err), bucket.Close())
		}
		if ok, _ := path.Match(pattern, strings.TrimPrefix(o.Name, prefix)); ok {
			found = append(found, o.Name)
		}
	}
	if found == nil {
		return nil, nil, errors.Join(noMatch(below+pattern), bucket.Close())
	}
	return bucket, found, nil
}

// object is the content of an object. The first read opens it, because idle connections
// are closed.
type object struct {
	ctx    context.Context //nolint:containedctx // it lives for one import
	bucket Bucket
	name   string
	body   io.ReadCloser
}

func (o *object) Read(p []byte) (int, error) {
	if o.body == nil {
		_, body, err := o.bucket.Get(o.ctx, o.name, 0, objstore.All)
		if err != nil {
			return 0, objectError(err)
		}
		o.body = body
	}
	n, err := o.body.Read(p)
	if err != nil && err != io.EOF {
		err = objectError(err)
	}
	return n, err
}

func (o *object) close() error {
	if o.body == nil {
		return nil
	}
	return o.body.Close()
}
