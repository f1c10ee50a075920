package plugproc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// maxManifest bounds the size of a manifest's file.
const maxManifest = 8 << 20

// manifestCache keeps manifests, so that a plugin need not run to say what it
// offers. A manifest lies beside the binary as tea-plugin-NAME.json, where the
// one who packed the plugin put it, or in the cache's own directory under
// a name that is made of the binary's path, size, times and inode: a binary
// that was changed finds none.
type manifestCache struct {
	dir    string
	logger *slog.Logger
}

// read gives the manifest of a binary, where there is one for it. The error
// says why the one beside the binary does not count.
func (c manifestCache) read(b binary) (m tea.Manifest, found bool, err error) {
	m, err = readBeside(b)
	if err == nil {
		return m, true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if c.dir == "" {
		return tea.Manifest{}, false, err
	}
	m, unread := readManifest(c.file(b))
	return m, unread == nil, err
}

// readBeside reads the manifest beside the binary. One that is older than the
// binary was not made of it.
func readBeside(b binary) (tea.Manifest, error) {
	path := besidePath(b)
	info, err := os.Stat(path)
	if err != nil {
		return tea.Manifest{}, err
	}
	again := fmt.Sprintf("%s --manifest > %s", b.path, path)
	switch {
	case info.ModTime().Before(b.info.ModTime()):
		return tea.Manifest{}, errors.New("not read, since it is older than its plugin; make it anew: " + again)
	case info.Mode().Perm()&0o002 != 0:
		return tea.Manifest{}, errors.New("not read, since everybody may write to it (chmod o-w)")
	}
	m, err := readManifest(path)
	if err != nil {
		return m, fmt.Errorf("not read, since it is no manifest (%w); make it anew: %s", err, again)
	}
	if m.Name != b.name {
		return m, fmt.Errorf("not read, since it is the manifest of %q", m.Name)
	}
	return m, nil
}

// besidePath is where a packed plugin has its manifest.
func besidePath(b binary) string { return b.path + ".json" }

func readManifest(path string) (tea.Manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return tea.Manifest{}, err
	}
	if info.Size() > maxManifest {
		return tea.Manifest{}, fmt.Errorf("%d bytes are too much for a manifest", info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return tea.Manifest{}, err
	}
	var m tea.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return tea.Manifest{}, err
	}
	return m, m.Check()
}

// write stores a manifest and removes those of the file's earlier contents. A
// cache that cannot be written is no fault: the plugin is asked again.
func (c manifestCache) write(b binary, m tea.Manifest) {
	if c.dir == "" {
		return
	}
	target := c.file(b)
	data, err := json.Marshal(m)
	if err == nil {
		err = c.replace(b, target, data)
	}
	if err != nil {
		c.logger.Debug("the manifest of a plugin was not cached", "plugin", b.name, "error", err)
	}
}

// silence is how long a plugin that used up its time to start is left alone:
// not so long that a device which was overloaded would miss it for good.
const silence = 10 * time.Minute

// readSilence is the error of a plugin that gave no answer a short while ago;
// nil where it may be asked.
func (c manifestCache) readSilence(b binary) error {
	if c.dir == "" {
		return nil
	}
	info, err := os.Stat(c.silenceFile(b))
	if err != nil {
		return nil
	}
	if age := time.Since(info.ModTime()); age < 0 || age >= silence {
		return nil
	}
	said, err := os.ReadFile(c.silenceFile(b))
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s; asked at %s, and again by `tea plugin list` or after %.0f minutes", said, info.ModTime().Format(time.TimeOnly), silence.Minutes())
}

// writeSilence notes that a plugin gave no answer, and why.
func (c manifestCache) writeSilence(b binary, why string) {
	if c.dir == "" {
		return
	}
	if err := c.replace(b, c.silenceFile(b), []byte(why)); err != nil {
		c.logger.Debug("that a plugin gave no answer was not noted", "plugin", b.name, "error", err)
	}
}

// replace writes a file of the cache and removes all others of the binary.
func (c manifestCache) replace(b binary, target string, data []byte) error {
	if err := writeAtomically(target, data); err != nil {
		return err
	}
	earlier, err := filepath.Glob(filepath.Join(c.dir, pathKey(b)+"-*"))
	if err != nil {
		return err // the pattern is ours
	}
	for _, file := range earlier {
		if file != target {
			os.Remove(file)
		}
	}
	return nil
}

func writeAtomically(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".manifest-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone already where all went well
	if _, err := temp.Write(data); err != nil {
		temp.Close()
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// file names the cache's file for a binary as it is now.
func (c manifestCache) file(b binary) string {
	return filepath.Join(c.dir, pathKey(b)+"-"+stateKey(b)+".json")
}

func (c manifestCache) silenceFile(b binary) string {
	return strings.TrimSuffix(c.file(b), ".json") + ".silent"
}

func pathKey(b binary) string { return hash(b.path) }

func stateKey(b binary) string {
	state := fmt.Sprint(b.info.Size(), b.info.ModTime().UnixNano())
	if stat, ok := b.info.Sys().(*syscall.Stat_t); ok {
		state += fmt.Sprint(" ", stat.Dev, stat.Ino)
	}
	return hash(state)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
