package objstore

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Scheme provides the driver for some schemes; see [Open].
type Scheme struct {
	// Names are the schemes, such as "s3".
	Names []string
	// Env are the environment variables that the driver and its client read.
	Env []string
	// Connect returns a driver for a bucket. It does not call the service.
	Connect func(ctx context.Context, target Target) (Driver, error)
}

// Target is the bucket that a Scheme connects to.
type Target struct {
	// Bucket is the name of the bucket, or of Azure's container.
	Bucket   string
	Settings Settings
	// HTTP enforces the limits of this package. The driver uses it for all requests.
	HTTP *http.Client
}

// Driver calls a service for one bucket. Its errors are the errors of the vendor's
// client, which Fault explains. It is safe for concurrent use.
type Driver interface {
	// Put writes an object, which appears atomically. It reads r once. The caller
	// sets the size of the result.
	Put(ctx context.Context, key string, r io.Reader, o PutOptions) (Object, error)
	// Read opens an object at an offset. length is -1 for the rest. If version is not
	// empty, the object must still have it.
	Read(ctx context.Context, key string, offset, length int64, version string) (Object, io.ReadCloser, error)
	Stat(ctx context.Context, key string) (Object, error)
	// Delete removes an object. If it does not exist, the error is nil or has the
	// status 404.
	Delete(ctx context.Context, key string) error
	Copy(ctx context.Context, from, to string) error
	// List returns a page of objects in the order of their names. token is empty for
	// the first page, and next is empty after the last one.
	List(ctx context.Context, prefix, token string) (page []Object, next string, err error)
	// Sign returns an address with which anyone can read (GET) or write (PUT) an
	// object until it expires.
	Sign(ctx context.Context, method, key string, expires time.Duration) (string, error)
	// Exists returns an error if the bucket is missing or cannot be reached.
	Exists(ctx context.Context) error
	// Fault returns the service's error; the zero value if err is not a response of a
	// service.
	Fault(err error) Fault
}

// Object describes an object.
type Object struct {
	// Name is relative to the bucket's prefix.
	Name     string
	Size     int64
	Modified time.Time
	// Version changes with each write: an ETag, or the generation of Google's
	// service. It is for [PutOptions].Match.
	Version     string
	ContentType string
	// Metadata has lower-case names. It is empty in listings.
	Metadata map[string]string
	// Checksum is the checksum of the whole content, if the service stores one:
	// crc32c, crc32, crc64nvme, md5 or sha256, a colon, and the sum in Base64.
	Checksum string
}

// PutOptions are the options of a Put.
type PutOptions struct {
	ContentType string
	// Metadata has lower-case names of letters and digits.
	Metadata map[string]string
	// Match is the version that the object must have; Absent if it must not exist.
	Match string
}

// Absent is the Match of a Put that must create the object.
const Absent = "absent"

// Fault is the error in a service's response.
type Fault struct {
	// Status is the HTTP status.
	Status int
	// Code is the service's error code, such as NoSuchBucket.
	Code    string
	Message string
	// Region is the region of the bucket, if the service reported it.
	Region     string
	RetryAfter time.Duration
}

// TotalSize returns the size of the object from the header Content-Range.
func TotalSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, tea.Errorf(tea.ConnectionError, "the service answered with the range %q, which has no size", contentRange)
	}
	return n, nil
}
