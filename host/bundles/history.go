package bundles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/digest"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// history is the file with the formerly active versions of a plugin, oldest first.
// The link of the plugin determines which one is active now: a crash between
// changing the history and the link leaves the old version active with the right
// predecessor.
type history struct {
	Format  int      `json:"format"`
	Entries []string `json:"entries"`
}

func (s *Store) historyDir() string { return filepath.Join(s.root, "history") }

func (s *Store) historyFile(name string) string {
	return filepath.Join(s.historyDir(), name+".json")
}

// history returns the versions of a plugin, including the active one. After an error
// it returns at least the active one.
func (s *Store) history(name, active string) ([]string, error) {
	var h history
	data, err := os.ReadFile(s.historyFile(name))
	switch {
	case err == nil:
		err = parseHistory(data, &h)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		h.Entries, err = nil, fmt.Errorf("%s: %w; install %s again", s.historyFile(name), err, name)
	}
	if active != "" && !slices.Contains(h.Entries, active) {
		h.Entries = append(h.Entries, active)
	}
	return h.Entries, err
}

func parseHistory(data []byte, h *history) error {
	if err := digest.ParseCanonical(data, h); err != nil {
		return err
	}
	if h.Format != recordFormat {
		return fmt.Errorf("it has format %d; this tea reads format %d", h.Format, recordFormat)
	}
	for _, id := range h.Entries {
		if !isID(id) {
			return fmt.Errorf("%q is not the name of an entry", id)
		}
	}
	return nil
}

func (s *Store) writeHistory(name string, ids []string) error {
	data, err := digest.Canonical(history{Format: recordFormat, Entries: ids})
	if err != nil {
		return err
	}
	if err := makeDir(s.historyDir()); err != nil {
		return err
	}
	return atomicfile.Write(s.historyFile(name), 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

func (s *Store) activate(name, id string) error {
	if err := makeDir(s.plugins); err != nil {
		return err
	}
	temporary := filepath.Join(s.plugins, linkPrefix+name)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash
		return err
	}
	target := filepath.Join("..", filepath.Base(s.root), id, filepath.Base(s.link(name)))
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, s.link(name)); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return atomicfile.SyncDir(s.plugins)
}

// linkPrefix is the prefix of a link's name until it is renamed.
const linkPrefix = ".tea-new-"

// Rollback activates the version of a plugin that was active before the current
// one, and returns both.
func (s *Store) Rollback(name string) (from, to *Entry, err error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	active, err := s.active(name)
	if err != nil {
		return nil, nil, err
	}
	if active == "" {
		return nil, nil, &NotInstalledError{Name: name}
	}
	ids, err := s.history(name, active)
	if err != nil {
		return nil, nil, err
	}
	if from, err = s.entry(active); err != nil {
		return nil, nil, err
	}
	at := slices.Index(ids, active)
	if at == 0 {
		return nil, nil, fmt.Errorf("%s %s has no earlier version to return to", name, from.Version)
	}
	if to, err = s.entry(ids[at-1]); err != nil {
		return nil, nil, err
	}
	if faults := to.check(); len(faults) > 0 {
		return nil, nil, faults[0]
	}
	return from, to, s.activate(name, to.ID)
}

// Activate activates a version that was active before, after a newer one has
// failed.
func (s *Store) Activate(e *Entry) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.activate(e.Name, e.ID)
}

// NotInstalledError reports a plugin that is not installed.
type NotInstalledError struct{ Name string }

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("plugin %q is not installed", e.Name)
}
