// Package gcs implements Google Cloud Storage, the scheme gs:// of package objstore.
//
// Without credentials in the settings it uses Google's application default credentials:
// GOOGLE_APPLICATION_CREDENTIALS, or the login of gcloud. The service account of the
// machine is used only with the setting metadata_server. HMAC keys, in access_key_id and
// secret_access_key or in GCS_ACCESS_KEY_ID and GCS_SECRET_ACCESS_KEY, use the protocol
// of S3, without conditional writes.
package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"

	"github.com/the-edge-agent/tea/objstore"
)

// Scheme returns the scheme gs://.
func Scheme() objstore.Scheme {
	return objstore.Scheme{Names: []string{"gs"}, Env: environment(), Connect: connect}
}

func environment() []string {
	return []string{
		"GOOGLE_APPLICATION_CREDENTIALS", "GCS_ACCESS_KEY_ID", "GCS_SECRET_ACCESS_KEY", "STORAGE_EMULATOR_HOST", "GCE_METADATA_HOST", "CLOUDSDK_CONFIG",
		"HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	}
}

const (
	// partSize is the size of a part of a large upload, and the memory of an upload.
	partSize = 8 << 20
	pageSize = 1000
)

var waits = backoff.Policy{Base: 200 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2, Jitter: 0.5}

type driver struct {
	objects *storage.ObjectsService
	buckets *storage.BucketsService
	bucket  string
	tries   int
	auth    *auth
	base    string // of signed addresses
}

func connect(ctx context.Context, t objstore.Target) (objstore.Driver, error) {
	if settings, ok := hmacKeys(t.Settings); ok {
		t.Settings = settings
		return connectHMAC(ctx, t)
	}
	endpoint, emulated := t.Settings.Endpoint, os.Getenv("STORAGE_EMULATOR_HOST")
	if endpoint == "" && emulated != "" {
		if endpoint = emulated; !strings.Contains(emulated, "://") {
			endpoint = "http://" + emulated
		}
	}
	own := endpoint != ""
	if !own {
		endpoint = "https://storage.googleapis.com"
	}
	address, err := objstore.Service(endpoint)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(address.String(), "/")
	a := &auth{settings: t.Settings, http: t.HTTP, anonymous: own && t.Settings.Credentials == "" && os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") == ""}
	client := &http.Client{Transport: a, CheckRedirect: t.HTTP.CheckRedirect}
	// Later requests for credentials use this context, too.
	service, err := storage.NewService(context.Background(), option.WithHTTPClient(client), option.WithEndpoint(base+"/storage/v1/"))
	if err != nil {
		return nil, err
	}
	return &driver{objects: service.Objects, buckets: service.Buckets, bucket: t.Bucket, tries: t.Settings.Tries(), auth: a, base: base}, nil
}

// retry repeats an idempotent request while it fails temporarily.
func (d *driver) retry(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt >= d.tries || ctx.Err() != nil || !transient(err) {
			return err
		}
		wait := waits.Wait(attempt)
		var said *googleapi.Error
		if errors.As(err, &said) {
			wait = max(wait, min(httpstatus.RetryAfter(said.Header, time.Now()), waits.Max))
		}
		if backoff.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

func transient(err error) bool {
	var said *googleapi.Error
	if errors.As(err, &said) {
		_, retryable := httpstatus.ErrorType(said.Code)
		return retryable
	}
	var typed *tea.Error
	return !errors.As(err, &typed)
}

// generation converts a version. Google's generations start at 1; 0 = none.
func generation(version string) (int64, error) {
	if version == objstore.Absent {
		return 0, nil
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n <= 0 {
		return 0, tea.Errorf(tea.ValidationError, "%q is not a version of an object", version)
	}
	return n, nil
}

func (d *driver) Put(ctx context.Context, key string, r io.Reader, o objstore.PutOptions) (objstore.Object, error) {
	single := int64(partSize)
	if o.Match != "" {
		single = objstore.MaxConditional + 1
	}
	var part bytes.Buffer
	n, err := io.CopyN(&part, r, single)
	if err != nil && err != io.EOF {
		return objstore.Object{}, err
	}
	object := &storage.Object{Name: key, ContentType: o.ContentType, Metadata: o.Metadata}
	if object.ContentType == "" {
		object.ContentType = "application/octet-stream"
	}
	insert := func(data io.Reader, chunk int) (*storage.Object, error) {
		call := d.objects.Insert(d.bucket, object).Context(ctx).Media(data, googleapi.ChunkSize(chunk), googleapi.ContentType(object.ContentType))
		if o.Match != "" {
			match, err := generation(o.Match)
			if err != nil {
				return nil, err
			}
			call.IfGenerationMatch(match)
		}
		return call.Do()
	}
	if err == io.EOF { // a single request
		object.Crc32c = encode(crc32.Checksum(part.Bytes(), castagnoli()))
		var written *storage.Object
		err := d.retry(ctx, func() (err error) {
			written, err = insert(bytes.NewReader(part.Bytes()), int(n)+googleapi.MinUploadChunkSize)
			return err
		})
		return toObject(written), err
	}
	sum := crc32.New(castagnoli())
	written, err := insert(io.TeeReader(io.MultiReader(&part, r), sum), partSize)
	if err != nil {
		return objstore.Object{}, err
	}
	if want := sumOf(sum); written.Crc32c != "" && written.Crc32c != want {
		return objstore.Object{}, tea.Errorf(tea.InternalError, "the object was damaged while it was written: its checksum is %s, not %s", written.Crc32c, want)
	}
	return toObject(written), nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func encode(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func sumOf(h hash.Hash32) string { return encode(h.Sum32()) }

func (d *driver) Read(ctx context.Context, key string, offset, length int64, version string) (o objstore.Object, body io.ReadCloser, err error) {
	call := d.objects.Get(d.bucket, key).Context(ctx)
	if version != "" {
		match, err := generation(version)
		if err != nil {
			return o, nil, err
		}
		call.IfGenerationMatch(match)
	}
	switch {
	case length > 0:
		call.Header().Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-"+strconv.FormatInt(offset+length-1, 10))
	case offset > 0:
		call.Header().Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	var resp *http.Response
	err = d.retry(ctx, func() (err error) { resp, err = call.Download(); return err }) //nolint:bodyclose // it is returned
	if err != nil {
		return o, nil, err
	}
	h := resp.Header
	o = objstore.Object{Name: key, Size: resp.ContentLength, Version: h.Get("X-Goog-Generation"), ContentType: h.Get("Content-Type"), Metadata: map[string]string{}}
	if part := h.Get("Content-Range"); part != "" {
		if o.Size, err = objstore.TotalSize(part); err != nil {
			return o, nil, errors.Join(err, resp.Body.Close())
		}
	}
	o.Modified, _ = http.ParseTime(h.Get("Last-Modified"))
	for _, sums := range h.Values("X-Goog-Hash") {
		for sum := range strings.SplitSeq(sums, ",") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(sum), "crc32c="); ok {
				o.Checksum = "crc32c:" + value
			}
		}
	}
	for name, values := range h {
		if name, ok := strings.CutPrefix(name, "X-Goog-Meta-"); ok {
			o.Metadata[strings.ToLower(name)] = values[0]
		}
	}
	return o, resp.Body, nil
}

func (d *driver) Stat(ctx context.Context, key string) (objstore.Object, error) {
	var found *storage.Object
	err := d.retry(ctx, func() (err error) { found, err = d.objects.Get(d.bucket, key).Context(ctx).Do(); return err })
	return toObject(found), err
}

func toObject(from *storage.Object) objstore.Object {
	if from == nil {
		return objstore.Object{}
	}
	o := objstore.Object{
		Name: from.Name, Size: int64(from.Size), Version: strconv.FormatInt(from.Generation, 10), ContentType: from.ContentType, Metadata: map[string]string{}, //nolint:gosec // sizes are below 2^63
	}
	if from.Crc32c != "" {
		o.Checksum = "crc32c:" + from.Crc32c
	}
	for name, value := range from.Metadata {
		o.Metadata[strings.ToLower(name)] = value
	}
	o.Modified, _ = time.Parse(time.RFC3339, from.Updated)
	return o
}

func (d *driver) Delete(ctx context.Context, key string) error {
	return d.retry(ctx, func() error { return d.objects.Delete(d.bucket, key).Context(ctx).Do() })
}

// Copy repeats the request, as large objects require.
func (d *driver) Copy(ctx context.Context, from, to string) error {
	for token := ""; ; {
		var answer *storage.RewriteResponse
		err := d.retry(ctx, func() (err error) {
			answer, err = d.objects.Rewrite(d.bucket, from, d.bucket, to, &storage.Object{}).RewriteToken(token).Context(ctx).Do()
			return err
		})
		if err != nil || answer.Done {
			return err
		}
		token = answer.RewriteToken
	}
}

func (d *driver) List(ctx context.Context, prefix, token string) (page []objstore.Object, next string, err error) {
	var found *storage.Objects
	err = d.retry(ctx, func() (err error) {
		found, err = d.objects.List(d.bucket).Prefix(prefix).MaxResults(pageSize).PageToken(token).Context(ctx).Do()
		return err
	})
	if err != nil {
		return nil, "", err
	}
	for _, o := range found.Items {
		page = append(page, toObject(o))
	}
	return page, found.NextPageToken, nil
}

func (d *driver) Exists(ctx context.Context) error {
	return d.retry(ctx, func() error { _, err := d.buckets.Get(d.bucket).Context(ctx).Do(); return err })
}

func (d *driver) Fault(err error) objstore.Fault {
	var said *googleapi.Error
	if !errors.As(err, &said) {
		return objstore.Fault{}
	}
	f := objstore.Fault{Status: said.Code, Message: said.Message, RetryAfter: httpstatus.RetryAfter(said.Header, time.Now())}
	if len(said.Errors) > 0 {
		f.Code = said.Errors[0].Reason
	}
	return f
}
