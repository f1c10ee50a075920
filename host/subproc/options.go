package subproc

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options configure the search for plugins and their processes. The zero value
// finds no plugins; see [Options.Search].
type Options struct {
	// Dirs are searched first, in this order; the first plugin with a name is used.
	// A directory that does not exist is an error.
	Dirs []string
	// Foreign are the elements of Dirs that were not named by the user but, for
	// example, by the author of a project. They are used only if Trust lists them.
	Foreign []string
	// Project is the plugin directory of the working directory. It is searched
	// next, if Trust lists it; "" means none.
	Project string
	// Trust lists the directories that the user trusts.
	Trust Trust
	// Standard directories are searched last, if they exist and are not writable
	// for all users.
	Standard []string
	// StoredOnly prevents starting plugins, both for their manifests and for calls,
	// which fail.
	StoredOnly bool
	// Logger receives the output of plugins and events of their processes; nil
	// means slog.Default.
	Logger *slog.Logger
	// Mask removes secrets from the output of plugins in the status; nil removes
	// nothing. The logger and the errors of calls get the output unchanged.
	Mask func(text string) string
	// CacheDir stores the manifests of plugins without a manifest next to them.
	// Empty means tea/manifests in the user's cache directory.
	CacheDir string
	// Env are additional variables (NAME=value) for every plugin, besides those
	// that are passed on from the host's environment (see inheritedVariables) and those that
	// its manifest declares.
	Env []string
	// Verify returns an error for a plugin that must not be used. It is called
	// before the stored manifest of a plugin is used and before each start of a
	// process, from several goroutines. Nil allows every plugin.
	Verify func(name, path string) error
	// Reattach are plugins under a debugger, as NAME=SOCKET, separated by commas:
	// calls of a discovered plugin go to that process, which the host neither
	// starts nor limits. It ends with the host. The directory of the socket, or a
	// line of a handshake, can replace the socket.
	Reattach string
	// Watched are files that Verify reads, which do not have to exist. Watch
	// reloads the plugins after one of them has changed.
	Watched []string
	// StartTimeout bounds the time from the start of a plugin to its first
	// answer; 0 means 30 s. A manifest can declare a longer time.
	StartTimeout time.Duration
	// SwapTimeout bounds the time that calls wait while a plugin with an
	// exclusive resource is replaced by a new version; 0 means 30 s.
	SwapTimeout time.Duration

	times times
}

// times are durations that only tests change.
type times struct {
	// configure bounds the opening of an instance, which can connect to a
	// database or a server.
	configure time.Duration
	// health is the interval between health checks during calls, and the time to
	// answer one.
	health time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Mask == nil {
		o.Mask = func(text string) string { return text }
	}
	if o.CacheDir == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			o.CacheDir = filepath.Join(dir, "tea", "manifests")
		}
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.SwapTimeout == 0 {
		o.SwapTimeout = 30 * time.Second
	}
	if o.times == (times{}) {
		o.times = times{configure: 30 * time.Second, health: 3 * time.Second}
	}
	return o
}

// Search adds directories to the options: those in TEA_PLUGINS, then ./plugins if the
// user trusts it, and the standard directories $XDG_DATA_HOME/tea/plugins, those of the
// options, and /usr/lib/tea/plugins. getenv is os.Getenv outside tests.
func (o Options) Search(getenv func(string) string) Options {
	for _, dir := range filepath.SplitList(getenv("TEA_PLUGINS")) {
		if dir != "" && !slices.Contains(o.Dirs, dir) {
			o.Dirs = append(slices.Clip(o.Dirs), dir)
		}
	}
	o.Reattach = getenv("TEA_REATTACH")
	o.Project = "./plugins"
	o.Trust = userTrust(getenv)
	if data := dataHome(getenv); data != "" {
		o.Standard = slices.Insert(slices.Clone(o.Standard), 0, filepath.Join(data, "tea", "plugins"))
	}
	o.Standard = append(slices.Clip(o.Standard), "/usr/lib/tea/plugins")
	return o
}

// userTrust returns the user's list, $XDG_DATA_HOME/tea/trusted-plugins.json.
func userTrust(getenv func(string) string) Trust {
	if data := dataHome(getenv); data != "" {
		return Trust{filepath.Join(data, "tea", "trusted-plugins.json")}
	}
	return Trust{}
}

func dataHome(getenv func(string) string) string {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share")
	}
	return ""
}
