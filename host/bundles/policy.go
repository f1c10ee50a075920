package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/digest"
)

// Policy has the rules of one host. The zero value allows everything. It is
// safe for concurrent use.
type Policy struct {
	// Store has the installed bundles; nil for none.
	Store *Store
	// Locks must all allow a plugin.
	Locks []*Lock
	// Keys are lists of required keys. One key of each list must have signed
	// the bundle of a plugin.
	Keys [][]Key
	// Cache remembers the digests of files.
	Cache digest.Cache
}

// Platform is the platform of this process.
const Platform = runtime.GOOS + "/" + runtime.GOARCH

// Verify reports why a plugin must not run; nil if it may. A host calls it before
// each start of a process and before it uses a stored manifest.
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

// installed returns the store entry of a binary after verifying it against its
// record; nil if the store does not have the binary.
func (p *Policy) installed(binary string) (*Entry, error) {
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
func (p *Policy) checkKeys(name string, e *Entry, keys []Key) error {
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
				if !errors.Is(err, ErrOtherKey) {
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

// KeyError reports a plugin that is not signed by a required key.
type KeyError struct {
	Name, Reason string
	Keys         []string // their IDs
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s, and the configuration requires a signature by key %s; install a signed bundle with `tea plugin install FILE`, or change plugins.keys",
		e.Reason, strings.Join(e.Keys, " or "))
}

// Rules are the sources of a host's policy.
type Rules struct {
	// Dirs are the directories whose lock files apply: the workflow files' and
	// the project's. A lock that cannot be read is an error.
	Dirs []string
	// Keys are lists of required keys, as text or files. A bundle needs a
	// signature by one key of each list.
	Keys [][]string
	// Getenv is os.Getenv outside tests.
	Getenv func(string) string
}

// LoadPolicy reads the locks and the keys.
func LoadPolicy(r Rules) (*Policy, error) {
	if r.Getenv == nil {
		r.Getenv = os.Getenv
	}
	p := &Policy{Store: UserStore(r.Getenv)}
	if cache := home(r.Getenv, "XDG_CACHE_HOME", ".cache"); cache != "" {
		p.Cache = digest.Cache{Dir: filepath.Join(cache, "tea", "digests")}
	}
	seen := map[string]bool{}
	for _, dir := range r.Dirs {
		if absolute, err := filepath.Abs(dir); err == nil { // a removed working directory has no lock
			dir = absolute
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if seen[dir] {
			continue
		}
		seen[dir] = true
		lock, err := ReadLock(filepath.Join(dir, LockName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.Locks = append(p.Locks, lock)
	}
	var err error
	p.Keys, err = parseKeys(r.Keys)
	return p, err
}

func parseKeys(lists [][]string) ([][]Key, error) {
	var all [][]Key
	for _, list := range lists {
		var keys []Key
		for _, text := range list {
			k, err := ParseKey(text)
			if err != nil {
				return nil, fmt.Errorf("plugins.keys: %w", err)
			}
			keys = append(keys, k)
		}
		all = append(all, keys)
	}
	return all, nil
}
