package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// maxInline is the size of a value above which it is stored outside of Temporal.
const maxInline = 64 << 10

// storage stores large values in a directory; "" stores them in Temporal.
func storage(dir string) converter.ExternalStorage {
	if dir == "" {
		return converter.ExternalStorage{}
	}
	return converter.ExternalStorage{Drivers: []converter.StorageDriver{blobs{dir}}, PayloadSizeThreshold: maxInline}
}

// blobs is a directory with a directory for each run, in that of its namespace. It
// has the values by their digest, so equal values of a run are stored once.
type blobs struct{ dir string }

// The keys of a claim: the digest of the value, and the directory of the run.
const (
	digestClaim = "sha256"
	runClaim    = "run"
)

func (blobs) Name() string { return "tea" }

func (blobs) Type() string { return "tea.directory" }

// Store writes the payloads that are not there.
func (b blobs) Store(c converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	run, ok := c.Target.(converter.StorageDriverWorkflowInfo)
	if !ok {
		return nil, errors.New("store a value: it does not belong to a run")
	}
	place := runPlace(run.Namespace, run.WorkflowID)
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		err := c.GetLimiter().Permit(c.Context, p, func() error {
			name, err := b.store(place, p)
			claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{digestClaim: name, runClaim: place}}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("store a value: %w", err)
		}
	}
	return claims, nil
}

func (b blobs) store(place string, p *commonpb.Payload) (name string, err error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	name = hex.EncodeToString(sum[:])
	path := b.path(place, name)
	if _, err := os.Stat(path); err == nil {
		return name, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return name, atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

// Retrieve reads the payloads and checks their digests.
func (b blobs) Retrieve(c converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		err := c.GetLimiter().Permit(c.Context, claim, func() (err error) {
			payloads[i], err = b.read(claim.ClaimData[runClaim], claim.ClaimData[digestClaim])
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read a value: %w", err)
		}
	}
	return payloads, nil
}

func (b blobs) read(place, name string) (*commonpb.Payload, error) {
	if len(name) != 2*sha256.Size || strings.Trim(name, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is not a digest", name)
	}
	if !filepath.IsLocal(place) {
		return nil, fmt.Errorf("%q is not the directory of a run", place)
	}
	path := b.path(place, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; is --blobs the same directory for all workers?", err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("%s is damaged", path)
	}
	p := new(commonpb.Payload)
	if err := proto.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// runPlace is the directory of a run.
func runPlace(namespace, run string) string {
	return filepath.Join(url.PathEscape(namespace), "run-"+url.PathEscape(run))
}

func (b blobs) path(place, name string) string { return filepath.Join(b.dir, place, name) }

// youngBlobs is the age below which values can belong to a run that is about to
// start.
const youngBlobs = time.Hour

// prune removes the values of the runs of a namespace that gone reports.
func (b blobs) prune(namespace string, before time.Time, gone func(run string) (bool, error)) error {
	dir := filepath.Join(b.dir, url.PathEscape(namespace))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	faults := []error{err}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "run-")
		run, bad := url.PathUnescape(name)
		info, err := e.Info()
		if !ok || bad != nil || err != nil || !info.ModTime().Before(before) {
			continue
		}
		ended, err := gone(run)
		if err == nil && ended {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// digest is a short digest of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
