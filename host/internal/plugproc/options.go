package plugproc

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Options say where plugins are and how they are run. The zero value finds
// none; see [SearchPath].
type Options struct {
	// Dirs are searched in this order; the first plugin of a name wins.
	Dirs []string
	// Named is how many of Dirs, from the first on, somebody has named. Of
	// the others, one that everybody may write to is not used.
	Named int
	// Logger takes what plugins write and what happens to them; nil is
	// slog's default.
	Logger *slog.Logger
	// CacheDir holds the manifests of plugins that have none beside them.
	// Empty is tea/manifests in the user's cache directory.
	CacheDir string
	// Env are further variables (NAME=value) for every plugin, beside the few
	// that are passed on from the host's own environment (see passedOn).
	Env []string
	// Checksums pin binaries by bundle name: a binary whose SHA-256 is
	// another is not started.
	Checksums map[string][]byte
	// StartTimeout is how long a plugin may take from its start to its first
	// answer; 0 is 10 s.
	StartTimeout time.Duration
	// AskAgain starts also plugins that gave no answer a short while ago.
	AskAgain bool
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.CacheDir == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			o.CacheDir = filepath.Join(dir, "tea", "manifests")
		}
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Second
	}
	return o
}

// SearchPath is the list of directories where plugins are looked for: first
// the given ones, then those in TEA_PLUGINS, ./plugins,
// $XDG_DATA_HOME/tea/plugins and /usr/lib/tea/plugins. Named is how many of
// them are not the standard ones. getenv is os.Getenv outside tests.
func SearchPath(first []string, getenv func(string) string) (dirs []string, named int) {
	dirs = append(dirs, first...)
	for _, dir := range filepath.SplitList(getenv("TEA_PLUGINS")) {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	named = len(dirs)
	dirs = append(dirs, "plugins")
	data := getenv("XDG_DATA_HOME")
	if data == "" && getenv("HOME") != "" {
		data = filepath.Join(getenv("HOME"), ".local", "share")
	}
	if data != "" {
		dirs = append(dirs, filepath.Join(data, "tea", "plugins"))
	}
	return append(dirs, "/usr/lib/tea/plugins"), named
}
