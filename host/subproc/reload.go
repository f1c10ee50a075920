package subproc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// pollEvery is the interval between checks of the plugins' files.
const pollEvery = time.Second

// Reload searches the directories again, adds new plugins, and replaces plugins whose
// files have changed, all or the named ones. Running calls end on the version on which
// they began, see [Swap]. Plugins whose files are gone remain. The error concerns a
// directory, or a closed set.
func (s *Plugins) Reload(ctx context.Context, names ...string) ([]Swap, error) {
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return nil, tea.Errorf(tea.Canceled, "the host is closing")
	}
	s.reloads.Add(1)
	s.mu.Unlock()
	defer s.reloads.Done()
	o := s.launcher.options
	if o.StoredOnly {
		return nil, nil
	}
	o.Logger = slog.New(slog.DiscardHandler) // Discover has logged it
	found, _, err := scan(o)
	if err != nil {
		return nil, fmt.Errorf("look for plugins: %w", err)
	}
	candidates, _ := choose(found, func(b binary) error {
		if p := s.named(b.name); p != nil && p.version().binary.path == b.path {
			return nil // if its new version is refused, the current one stays
		}
		return o.verify(b.name, b.path)
	})
	var mu sync.Mutex
	var swaps []Swap
	var swapping sync.WaitGroup
	for _, c := range candidates {
		b := c.binary
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		p := s.named(b.name)
		if p == nil {
			s.addNew(b)
			continue
		}
		if !p.isReplacedBy(b) {
			continue
		}
		swapping.Go(func() {
			done, isOther := p.swap(ctx, b)
			mu.Lock()
			defer mu.Unlock()
			if isOther {
				swaps = append(swaps, done)
			}
		})
	}
	swapping.Wait()
	swaps = append(swaps, s.unusable(found, names)...)
	sort.Slice(swaps, func(i, j int) bool { return swaps[i].Name < swaps[j].Name })
	return swaps, nil
}

// unusable returns the refusals of files that replace a plugin but must not be run, such
// as one that is not executable.
func (s *Plugins) unusable(found []binary, names []string) (refused []Swap) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, p := range s.plugins {
		if slices.ContainsFunc(found, func(b binary) bool { return b.name == name }) || len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		e := p.version()
		if _, err := inspect(filepath.Split(e.binary.path)); err != nil && !errors.Is(err, errNoTarget) {
			refused = append(refused, p.report(Swap{Name: name, Path: e.binary.path, From: e.manifest.Version, Err: err}))
		}
	}
	return refused
}

// named returns a plugin, or nil.
func (s *Plugins) named(name string) *supervisor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.plugins[name]
}

// addNew adds a plugin that did not exist, or could not be used, before.
func (s *Plugins) addNew(b binary) {
	err := s.launcher.options.verify(b.name, b.path)
	if err == nil {
		m, unknown := s.store.read(b)
		if unknown != nil {
			s.addUnread(b, unknown.Error())
			return
		}
		err = s.add(b, m)
	}
	if err != nil && !s.alreadyLogged(b, err) {
		s.launcher.options.Logger.Warn("plugin problem: "+b.path, "error", err)
	}
	s.warnRefused()
}

// addUnread adds a plugin whose manifest is not known. A plugin that did not return it is
// asked again after its file has changed.
func (s *Plugins) addUnread(b binary, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.useless[b.key()] {
		s.unread = slices.DeleteFunc(s.unread, func(u Unread) bool { return u.Name == b.name })
		s.unread = append(s.unread, Unread{Name: b.name, Path: b.path, Reason: reason, binary: b})
	}
}

// alreadyLogged reports whether a problem of a binary was already logged, and marks it as
// logged.
func (s *Plugins) alreadyLogged(b binary, problem error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := b.key() + ": " + problem.Error()
	known := s.logged[key]
	s.logged[key] = true
	return known
}

// isReplacedBy reports whether a binary differs from the current version. While
// the current version's file exists but cannot be used, for example during a copy, no
// plugin in a later directory replaces it.
func (s *supervisor) isReplacedBy(b binary) bool {
	e := s.version()
	if b.path == e.binary.path {
		return e.isReplaced()
	}
	_, err := inspect(filepath.Split(e.binary.path))
	return err == nil || errors.Is(err, errNoTarget)
}

// Watch calls [Plugins.Reload] after the files of plugins have changed, until ctx is done
// or the set is closed. It waits until the files have not changed for a second. A refused
// version is retried when its file changes again.
func (s *Plugins) Watch(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	s.watch(ctx, ticker.C)
}

func (s *Plugins) watch(ctx context.Context, ticks <-chan time.Time) {
	var handled, before string
	unfinished := make(chan struct{}, 1)
	for {
		select {
		case <-ticks:
		case <-unfinished:
			handled = ""
			continue
		case <-ctx.Done():
			return
		case <-s.life.Done():
			return
		}
		now := s.fingerprint()
		if now == handled || now != before {
			before = now
			continue
		}
		handled = now
		go func() { // a slow swap of one plugin does not delay the others
			swaps, err := s.Reload(ctx)
			if err != nil && ctx.Err() == nil && s.life.Err() == nil {
				s.launcher.options.Logger.Warn("plugins are not reloaded", "error", err)
			}
			if slices.ContainsFunc(swaps, isUnfinished) {
				select {
				case unfinished <- struct{}{}:
				default:
				}
			}
		}()
	}
}

// isUnfinished reports whether a binary is still being written.
func isUnfinished(done Swap) bool { return errors.Is(done.Err, syscall.ETXTBSY) }

// fingerprint returns a text that changes with the plugins' files and the entries of the
// directories.
func (s *Plugins) fingerprint() string {
	o := s.launcher.options
	var text strings.Builder
	dirs := slices.Concat(o.Dirs, o.Standard)
	if o.Project != "" {
		dirs = append(dirs, o.Project)
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(&text, dir, err)
		}
		for _, entry := range entries {
			if isCandidate(entry) {
				path := filepath.Join(dir, entry.Name())
				fmt.Fprintln(&text, path, digest.State(path))
			}
		}
	}
	for _, path := range o.Watched {
		fmt.Fprintln(&text, path, digest.State(path))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range s.order {
		e := s.plugins[name].version()
		fmt.Fprintln(&text, name, stateOf(e.binary, e.manifest.Files))
	}
	return text.String()
}
