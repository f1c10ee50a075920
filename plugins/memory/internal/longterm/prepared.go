package longterm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

const (
	maxKey = 4096
	// blobPrefix is where the blobs of this package are.
	blobPrefix = "ltm/"
)

var (
	// errDamaged says that a value is not there as it was stored.
	errDamaged = errors.New("what is in its blob is not what was stored")
	// errGone says that an entry was removed while it was read.
	errGone = errors.New("removed meanwhile")
)

// storable says whether there can be an entry under key.
func storable(key string) bool { return key != "" && len(key) <= maxKey && utf8.ValidString(key) }

// content is an entry made ready to be written.
type content struct {
	key       string
	text      string // the value's canonical JSON
	value     any
	hash      string
	inline    bool   // the value is in the row, not in a blob
	metadata  string // canonical JSON, "" for none
	expiresAt int64  // microseconds since 1970; 0 = never
}

// prepare checks an entry and brings it into its canonical form: members in
// the order of their names, so that equal values have equal hashes.
func (m *Memory) prepare(e store.Entry) (*content, error) {
	switch {
	case e.Key == "":
		return nil, tea.Errorf(tea.ValidationError, "the key is empty")
	case len(e.Key) > maxKey:
		return nil, tea.Errorf(tea.ValidationError, "the key has %d bytes, more than %d", len(e.Key), maxKey)
	case !utf8.ValidString(e.Key):
		return nil, tea.Errorf(tea.ValidationError, "the key %q is not valid UTF-8", e.Key)
	case e.TTL < 0:
		return nil, tea.Errorf(tea.ValidationError, "key %q: the ttl is negative", e.Key)
	}
	c := &content{key: e.Key}
	var err error
	if c.value, c.text, err = canonical(e.Value); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the value of key %q: %w", e.Key, err)
	}
	if e.Metadata != nil {
		var object any
		if object, c.metadata, err = canonical(e.Metadata); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of key %q: %w", e.Key, err)
		}
		if _, ok := object.(map[string]any); !ok {
			return nil, tea.Errorf(tea.ValidationError, "the metadata of key %q is no object", e.Key)
		}
	}
	sum := sha256.Sum256([]byte(c.text))
	c.hash = hex.EncodeToString(sum[:])
	c.inline = len(c.text) < m.o.InlineBytes
	if e.TTL > 0 {
		c.expiresAt = m.o.Clock.Now().Add(e.TTL).UnixMicro()
	}
	return c, nil
}

func canonical(raw json.RawMessage) (v any, text string, err error) {
	if v, err = value.Decode(raw); err != nil {
		return nil, "", err
	}
	encoded, err := value.Encode(v)
	return v, string(encoded), err
}

// saveBlobs writes the blobs that are not there yet. The caller holds m.blobs
// for reading until the rows are written.
func (m *Memory) saveBlobs(ctx context.Context, contents []*content) error {
	for _, c := range contents {
		if c.inline {
			continue
		}
		name := blobName(c.hash)
		info, err := m.o.Blobs.Stat(ctx, name)
		if err == nil && info.Size == int64(len(c.text)) {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if _, err := m.o.Blobs.Put(ctx, name, bytes.NewReader([]byte(c.text))); err != nil {
			return err
		}
	}
	return nil
}

// blobName is where a value with this hash is.
func blobName(hash string) string { return blobPrefix + hash[:2] + "/" + hash }

// loadBlob reads a value from its blob and checks it against its hash.
func (m *Memory) loadBlob(ctx context.Context, hash string) (json.RawMessage, error) {
	if len(hash) != hex.EncodedLen(sha256.Size) {
		return nil, errDamaged
	}
	r, err := m.o.Blobs.Get(ctx, blobName(hash))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != hash {
		return nil, errDamaged
	}
	return text, nil
}
