package bundles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/host/internal/lockfile"
)

// Rules are where the policy of a host comes from.
type Rules struct {
	// Dirs are the directories whose lock files apply: those of the workflow
	// files and that of the project. A lock that cannot be read is an error.
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
		lock, err := lockfile.Read(filepath.Join(dir, LockName))
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
