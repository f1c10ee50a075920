package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/bundle"
	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/host/internal/lockfile"
	"github.com/the-edge-agent/tea/host/internal/store"
)

// Policy has the rules of one host. The zero value allows everything. It is
// safe for concurrent use.
type Policy struct {
	// Store has the installed bundles; nil for none.
	Store *store.Store
	// Locks must all allow a plugin.
	Locks []*lockfile.Lock
	// Keys are lists of required keys. One key of each list must have signed
	// the bundle of a plugin.
	Keys [][]bundle.Key
	// Cache remembers the digests of files.
	Cache digest.Cache
}

// Platform is the platform of this process.
const Platform = runtime.GOOS + "/" + runtime.GOARCH

// Verify reports why a plugin must not run; nil if it can. A host calls it
// before each start of a process and before it uses a stored manifest.
func (p *Policy) Verify(name, path string) error {
	binary, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	entry, err := p.installed(binary)
	if err != nil {
		return err
	}
	for _, keys := range p.Keys {
		if err := p.checkKeys(name, entry, keys); err != nil {
			return err
		}
	}
	for _, lock := range p.Locks {
		if err := lock.Check(name, binary, Platform, p.Cache.Of); err != nil {
			return err
		}
	}
	return nil
}

// installed returns the entry of a binary in the store after comparing it with
// its record; nil for another binary.
func (p *Policy) installed(binary string) (*store.Entry, error) {
	if p.Store == nil {
		return nil, nil
	}
	e, err := p.Store.Find(binary)
	if err != nil || e == nil {
		return nil, err
	}
	return e, e.Verify(p.Cache.Of)
}

// checkKeys checks that one of the keys has signed the bundle of a plugin.
func (p *Policy) checkKeys(name string, e *store.Entry, keys []bundle.Key) error {
	reason := "it was not installed from a bundle"
	if e != nil {
		reason = "its bundle is not signed"
		if e.Signature != "" {
			reason = "its bundle is signed by another key"
			for _, k := range keys {
				err := e.VerifySignature(k)
				if err == nil {
					return nil
				}
				if !errors.Is(err, store.ErrOtherKey) {
					return err
				}
			}
		}
	}
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID())
	}
	slices.Sort(ids)
	return &KeyError{Name: name, Reason: reason, Keys: ids}
}

// KeyError is the error of a plugin that no required key has signed.
type KeyError struct {
	Name, Reason string
	Keys         []string // their IDs
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s, and the configuration requires a signature by key %s; install a signed bundle with `tea plugin install FILE`, or change plugins.keys",
		e.Reason, strings.Join(e.Keys, " or "))
}
