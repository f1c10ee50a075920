package evaluate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// cache keeps results of runs and answers of judges, a file each. A nil cache keeps
// nothing. It is safe for concurrent use, also by several processes.
type cache struct {
	dir string

	mu  sync.Mutex
	err error // the first error of writing
}

// key returns the name of a result: a hash of what it depends on.
func (c *cache) key(kind string, wf *host.Workflow, secrets map[string]any, versions any, input map[string]any) (string, error) {
	if c == nil {
		return "", nil
	}
	settings, err := wf.Settings(secrets) // the digest does not have the values of variables
	if err != nil {
		return "", err
	}
	text, err := value.Encode([]any{kind, wf.Digest(), settings, versions, input})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// get reads a result into a pointer, and reports whether there is a valid one.
func (c *cache) get(key string, into any) bool {
	if c == nil {
		return false
	}
	text, err := os.ReadFile(c.path(key))
	if err != nil {
		return false
	}
	v, err := value.Decode(text)
	return err == nil && value.Into(v, into) == nil
}

// put writes a result. An error does not end the evaluation.
func (c *cache) put(key string, v any) {
	if c == nil {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path(key)), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(c.path(key), 0o600, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err == nil {
			c.err = fmt.Errorf("keep results: %w", err)
		}
	}
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key[:2], key[2:]+".json") }
