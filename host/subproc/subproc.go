package subproc

import (
	"context"
	"os"
	"time"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

var (
	_ host.Plugins = (*Plugins)(nil)
	_ host.Learner = (*Plugins)(nil)
	_ host.Limiter = (*Plugins)(nil)
)

// Discover finds the plugins in the directories of the options, in those of
// TEA_PLUGINS, in ./plugins if the user trusts it, and in the standard places,
// and reads their stored manifests. It starts nothing. The problems are those
// of single files; the error is that of ctx, or a *fs.PathError about a
// directory that was named. The caller closes the plugins, or passes them to a
// host.
func Discover(ctx context.Context, o Options) (*Plugins, []Problem, error) {
	return find(ctx, o.Search(os.Getenv))
}

// UserTrust returns the list that [Discover] uses.
func UserTrust() Trust { return userTrust(os.Getenv) }

// Manifests returns the manifests of [Plugins.Bundles] in the same order.
func (s *Plugins) Manifests() []tea.Manifest {
	bundles := s.Bundles()
	manifests := make([]tea.Manifest, len(bundles))
	for i, b := range bundles {
		manifests[i] = b.Manifest
	}
	return manifests
}

// Unread names the plugins whose manifests are not known.
func (s *Plugins) Unread() []string {
	var names []string
	for _, u := range s.UnreadBundles() {
		names = append(names, u.Name)
	}
	return names
}

// Open returns an instance of a bundle for a workflow's settings; settings that
// the bundle does not declare are dropped. The plugin starts with the first call
// of the instance, which returns the error of settings that the plugin refuses. A
// bundle that does not exist is a not_found error.
func (s *Plugins) Open(_ context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	inst, err := s.open(bundle, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

// grace is the time that running calls have when the host closes.
const grace = 2 * time.Second

// Close is [Plugins.Shutdown] with 2 s for running calls.
func (s *Plugins) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return s.Shutdown(ctx)
}
