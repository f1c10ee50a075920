package teacmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// projectFile sets the defaults of flags for everybody who works in a directory.
const projectFile = ".tea.yaml"

// configResolver finds the value of a flag that is not on the command line: in
// TEA_* variables, then the project's file, then the user's file. It covers the
// flags with a config tag.
type configResolver struct{ app *app }

func (configResolver) Validate(*kong.Application) error { return nil }

// Resolve returns the value, or nil. It never fails: kong would blame the flag.
// [configFiles] keeps the error.
func (r configResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	key := strings.ReplaceAll(flag.Name, "-", "_")
	if !flag.Tag.Has("config") || key == "plugins" && !runsPlugins {
		return nil, nil
	}
	config := r.app.config
	if name := "TEA_" + strings.ToUpper(key); r.app.getenv(name) != "" {
		text := r.app.getenv(name)
		if flag.IsSlice() && flag.Tag.Sep == -1 {
			return anySlice(filepath.SplitList(text)), nil
		}
		return config.accept(flag, text, name), nil
	}
	v, file := config.lookup(key)
	if file == projectFile {
		switch key {
		case "plugins":
			r.app.projectPlugins = true
		case "checkpoint_dir", "trace_file":
			v = config.acceptInside(v, file+": "+key)
		}
	}
	return config.accept(flag, v, file+": "+key), nil
}

func anySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// configKeys are the allowed keys of the configuration files.
var configKeys = []string{
	"checkpoint_dir", "durability", "interrupt_after", "interrupt_before", "plugins",
	"quiet", "secrets", "secrets_env", "stream", "trace_file",
}

// pathKeys are the keys whose values are paths relative to the directory of the
// file.
var pathKeys = []string{"checkpoint_dir", "plugins", "trace_file"}

// configFiles are the project's and the user's file. They are read on the first
// access.
type configFiles struct {
	getenv func(string) string
	read   bool
	// err is the first error of the files or of a value in them.
	err    error
	files  []string
	values []map[string]any
}

// lookup returns the value of a key and the file that has it; nil if no file
// has it.
func (c *configFiles) lookup(key string) (v any, file string) {
	if !c.read {
		c.read = true
		c.err = c.load()
	}
	for i, values := range c.values {
		if v, ok := values[key]; ok {
			return v, c.files[i]
		}
	}
	return nil, ""
}

// accept returns v if it fits the flag. Otherwise it records an error that names
// the source, and returns nil.
func (c *configFiles) accept(flag *kong.Flag, v any, source string) any {
	want := "a string"
	var fits bool
	switch {
	case v == nil:
		return nil
	case flag.IsBool():
		want = "true or false"
		text, _ := v.(string)
		_, fits = v.(bool)
		fits = fits || slices.Contains([]string{"true", "1", "yes", "false", "0", "no"}, strings.ToLower(text))
	case flag.IsSlice():
		want = "a list of strings"
		list, isList := v.([]any)
		_, fits = v.(string)
		fits = fits || isList && !slices.ContainsFunc(list, func(e any) bool { _, ok := e.(string); return !ok })
	default:
		_, fits = v.(string)
	}
	if fits {
		return v
	}
	if c.err == nil {
		c.err = fmt.Errorf("%s: expected %s, got %s", source, want, encoded(v))
	}
	return nil
}

// acceptInside returns the path of a file or directory that tea writes. For a path outside of
// the working directory it records an error and returns nil: a checkout could
// name any file of the user.
func (c *configFiles) acceptInside(v any, source string) any {
	path, isText := v.(string)
	if !isText {
		return v
	}
	inside, err := insideWorkingDir(path)
	if inside {
		return v
	}
	if c.err == nil && err == nil {
		err = fmt.Errorf("%s: %s is outside of the project; give it with a flag, a variable or the user's configuration", source, path)
	}
	if c.err == nil {
		c.err = err
	}
	return nil
}

// ofProcess reports whether an absolute path can depend on the process that opens it, such as /proc/self/cwd. Such a
// path could lead back into the checkout that contains it.
func ofProcess(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(filepath.Clean(path)), "/"), "/")
	return first == "proc" || first == "dev"
}

// insideWorkingDir reports whether a file, which need not exist, is in or below
// the working directory after its links are followed.
func insideWorkingDir(path string) (bool, error) {
	dir, err := os.Getwd()
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }() // it was only read
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(dir, path); err != nil {
			return false, err
		}
	}
	_, err = root.Stat(path)
	return err == nil || errors.Is(err, fs.ErrNotExist), nil
}

func (c *configFiles) load() error {
	c.files = []string{projectFile}
	if dir := configHome(c.getenv); dir != "" {
		c.files = append(c.files, filepath.Join(dir, "tea", "config.yaml"))
	}
	for _, file := range c.files {
		values, err := readConfig(file)
		if err != nil {
			return err
		}
		c.values = append(c.values, values)
	}
	return nil
}

// maxConfig is the maximum size of a configuration file in bytes.
const maxConfig = 1 << 20

func readConfig(file string) (map[string]any, error) {
	data, err := confine.ReadRegular(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		if info, found := os.Lstat(file); found == nil && info.Mode()&fs.ModeSymlink != 0 { // it can require keys
			return nil, fmt.Errorf("read configuration %s: it is a link to a file that does not exist", file)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", file, err)
	}
	if err := splitPlugins(values); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if keys, ok := values[requiredKeys].([]any); ok {
		values[requiredKeys] = keysFrom(filepath.Dir(file), keys)
	}
	for key, v := range values {
		if key == requiredKeys {
			continue
		}
		if !slices.Contains(configKeys, key) {
			return nil, fmt.Errorf("%s: unknown key %q%s", file, key, diag.Ending(key, configKeys))
		}
		if slices.Contains(pathKeys, key) {
			values[key] = fromDir(filepath.Dir(file), v)
		}
	}
	return values, nil
}

// requiredKeys is the key of the public keys that must have signed plugins. Files
// write it as plugins.keys.
const requiredKeys = "plugins.keys"

// splitPlugins separates the directories and the keys of plugins. A list or a
// string is short for the directories.
func splitPlugins(values map[string]any) error {
	both, ok := values["plugins"].(map[string]any)
	if !ok {
		return nil
	}
	delete(values, "plugins")
	for key, v := range both {
		switch key {
		case "dirs":
			values["plugins"] = v
		case "keys":
			list, ok := v.([]any)
			if !ok || len(list) == 0 || slices.ContainsFunc(list, func(e any) bool { _, ok := e.(string); return !ok }) {
				return fmt.Errorf("%s: expected a list of public keys or of their files, got %s", requiredKeys, encoded(v))
			}
			values[requiredKeys] = list
		default:
			return fmt.Errorf("unknown key %q in plugins%s", key, diag.Ending(key, []string{"dirs", "keys"}))
		}
	}
	return nil
}

// keysFrom makes paths of key files relative to a directory. An entry that begins
// with RW is a key, not a path.
func keysFrom(dir string, keys []any) []any {
	out := make([]any, len(keys))
	for i, k := range keys {
		if out[i] = k; !strings.HasPrefix(k.(string), "RW") {
			out[i] = fromDir(dir, k)
		}
	}
	return out
}

// requiredKeys returns the required keys, one list per file. The project's file
// adds to the user's keys and cannot replace them.
func (c *configFiles) requiredKeys() ([][]string, error) {
	c.lookup(requiredKeys) // reads the files
	var lists [][]string
	for _, values := range c.values {
		if list := keysOf(values); len(list) > 0 {
			lists = append(lists, list)
		}
	}
	return lists, c.err
}

func keysOf(values map[string]any) []string {
	var list []string
	keys, _ := values[requiredKeys].([]any)
	for _, k := range keys {
		list = append(list, k.(string))
	}
	return list
}

// fromDir makes a path, or each path of a list, relative to a directory.
func fromDir(dir string, v any) any {
	switch v := v.(type) {
	case string:
		if !filepath.IsAbs(v) {
			return filepath.Join(dir, v)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fromDir(dir, e)
		}
		return out
	}
	return v
}

func configHome(getenv func(string) string) string { return xdg(getenv, "XDG_CONFIG_HOME", ".config") }

// stateHome is the parent directory of runs without -c.
func stateHome(getenv func(string) string) string {
	return xdg(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state"))
}

func xdg(getenv func(string) string, name, underHome string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, underHome)
	}
	return ""
}
