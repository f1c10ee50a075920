package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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

// blobs is a directory with values by their digest. Equal values are stored once.
type blobs struct{ dir string }

// digestClaim is the key of a claim with the digest of the value.
const digestClaim = "sha256"

func (blobs) Name() string { return "tea" }

func (blobs) Type() string { return "tea.directory" }

// Store writes the payloads that are not there.
func (b blobs) Store(_ converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode a value: %w", err)
		}
		sum := sha256.Sum256(raw)
		name := hex.EncodeToString(sum[:])
		claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{digestClaim: name}}
		path := b.path(name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("store a value: %w", err)
		}
		err = atomicfile.Write(path, 0o600, func(w io.Writer) error {
			_, err := w.Write(raw)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("store a value: %w", err)
		}
	}
	return claims, nil
}

// Retrieve reads the payloads and checks their digests.
func (b blobs) Retrieve(_ converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, c := range claims {
		name := c.ClaimData[digestClaim]
		if len(name) != 2*sha256.Size || strings.Trim(name, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("read a value: %q is not a digest", name)
		}
		raw, err := os.ReadFile(b.path(name))
		if err != nil {
			return nil, fmt.Errorf("read a value: %w; is --blobs the same directory for all workers?", err)
		}
		if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != name {
			return nil, fmt.Errorf("read a value: %s is damaged", b.path(name))
		}
		payloads[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(raw, payloads[i]); err != nil {
			return nil, fmt.Errorf("read a value: %s: %w", b.path(name), err)
		}
	}
	return payloads, nil
}

func (b blobs) path(name string) string { return filepath.Join(b.dir, name[:2], name) }

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
