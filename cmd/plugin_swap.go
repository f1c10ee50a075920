//go:build !noplugins

package teacmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/the-edge-agent/tea/host/bundles"
	"github.com/the-edge-agent/tea/host/subproc"
)

// PluginChange is a plugin that was replaced while the service runs.
type PluginChange struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Before is the version that was replaced; "" for a new plugin, and for a
	// reinstalled version.
	Before string `json:"before,omitempty"`
	// SignedBy is the ID of the key that verified the signature.
	SignedBy string `json:"signed_by,omitempty"`
}

// InstalledPlugin is a plugin of the user's store.
type InstalledPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Earlier are the versions before the active one, the oldest first.
	Earlier []string `json:"earlier"`
}

// ErrNoEarlierVersion is the error of [Service.RollbackPlugin] for a plugin whose first
// version is active.
var ErrNoEarlierVersion = errors.New("it has no earlier version to return to")

// InstallPlugin installs a bundle file with its signature next to it, as `tea plugin
// install` does, and replaces the running version. The service's required keys and lock
// files apply. Unlike the command it starts the new version once before activating it.
// After an error the previous version stays active. name is the name of the file in
// messages.
func (s *Service) InstallPlugin(file, name string) (*PluginChange, error) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	installer, err := s.app.installer(nil)
	if err != nil {
		return nil, err
	}
	policy, err := s.app.policyOf(s.app.workflowDirs()...)
	if err != nil {
		return nil, err
	}
	installer.Keys, installer.Name, installer.Check = policy.Keys, name, s.checkPlugin
	changes, err := installer.Install(s.Context, file)
	if faults := bundles.BundleErrors(nil); errors.As(err, &faults) && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		return nil, err
	}
	done := changes[0]
	undo := func() error { return installer.Store.Remove(done.Now.Name) }
	if done.Before != nil {
		undo = func() error { return installer.Store.Activate(done.Before) }
	}
	return s.replacePlugin(done.Before, done.Now, undo)
}

// RollbackPlugin activates the previous version of a plugin, as `tea plugin rollback`
// does, and replaces the running version. After an error the present version stays
// active.
func (s *Service) RollbackPlugin(name string) (*PluginChange, error) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	store, err := s.app.store()
	if err != nil {
		return nil, err
	}
	plugins, err := store.List()
	at := slices.IndexFunc(plugins, func(p bundles.Installed) bool { return p.Name == name && p.Active >= 0 })
	switch {
	case at < 0 && err != nil:
		return nil, err
	case at < 0:
		return nil, &bundles.NotInstalledError{Name: name}
	case plugins[at].Active == 0:
		return nil, fmt.Errorf("%s %s: %w", name, plugins[at].Versions[0].Version, ErrNoEarlierVersion)
	}
	if err := s.checkPlugin(plugins[at].Versions[plugins[at].Active-1]); err != nil {
		return nil, err
	}
	from, to, err := store.Rollback(name)
	if err != nil {
		return nil, err
	}
	return s.replacePlugin(from, to, func() error { return store.Activate(from) })
}

// InstalledPlugins lists the active plugins of the user's store.
func (s *Service) InstalledPlugins() ([]InstalledPlugin, error) {
	list := []InstalledPlugin{}
	store := bundles.UserStore(s.app.getenv)
	if store == nil {
		return list, nil
	}
	plugins, err := store.List()
	for _, p := range plugins {
		if p.Active < 0 {
			continue
		}
		in := InstalledPlugin{Name: p.Name, Version: p.Versions[p.Active].Version, Earlier: []string{}}
		for _, e := range p.Versions[:p.Active] {
			in.Earlier = append(in.Earlier, e.Version)
		}
		list = append(list, in)
	}
	return list, err
}

// checkPlugin returns an error if a version must not or cannot run here.
func (s *Service) checkPlugin(e *bundles.Entry) error {
	policy, err := s.app.policyOf(s.app.workflowDirs()...)
	if err != nil {
		return err
	}
	if err := policy.Verify(e.Name, e.Binary()); err != nil {
		return err
	}
	m, err := subproc.Describe(s.Context, e.Binary(), subproc.Options{Logger: s.Log})
	if err != nil {
		return err
	}
	if m.Name != e.Name || m.Version != e.Version {
		return fmt.Errorf("the binary is %s %s and the bundle is %s %s", m.Name, m.Version, e.Name, e.Version)
	}
	return nil
}

// replacePlugin replaces the running version with the activated one. If the host
// refuses it, undo activates the previous version.
func (s *Service) replacePlugin(before, now *bundles.Entry, undo func() error) (*PluginChange, error) {
	plugins, ok := s.app.plugins.processes.(pluginProcesses)
	if !ok {
		return nil, errNoSet
	}
	err := useVersion(s.Context, plugins.Plugins, now)
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	done := &PluginChange{Name: now.Name, Version: now.Version}
	if before != nil && before.Version != now.Version {
		done.Before = before.Version
	}
	if k, err := bundles.ParseKey(now.Key); err == nil {
		done.SignedBy = k.ID()
	}
	return done, nil
}

var errNoSet = errors.New("the service has no plugin processes")

// useVersion makes the host use a version of the store.
func useVersion(ctx context.Context, plugins *subproc.Plugins, now *bundles.Entry) error {
	swaps, err := plugins.Reload(ctx, now.Name)
	if err != nil {
		return err
	}
	for _, swap := range swaps {
		if swap.Err != nil {
			return fmt.Errorf("%s %s is not used: %w", now.Name, now.Version, swap.Err)
		}
	}
	for _, used := range plugins.Bundles() {
		switch {
		case used.Manifest.Name != now.Name:
		case resolved(used.Path) != resolved(now.Binary()):
			return fmt.Errorf("%s is used from %s, which has precedence over installed plugins; replace that file", now.Name, used.Path)
		default:
			return nil
		}
	}
	return fmt.Errorf("%s %s was installed and cannot be used; the log has the reason", now.Name, now.Version)
}
