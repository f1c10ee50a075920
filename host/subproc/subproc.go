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

// Discover finds the plugins in the directories of the options and of TEA_PLUGINS,
// in ./plugins if the user trusts it, and in the standard directories, and reads their
// stored manifests. It starts nothing. The problems concern single files; the error is
// ctx's, or a *fs.PathError about a named directory. The caller closes the plugins, or
// passes them to a host.
func Discover(ctx context.Context, o Options) (*Plugins, []Problem, error) {
	return find(ctx, o.Search(os.Getenv))
}

// UserTrust returns the user's list, which [Discover] uses.
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

// Unread returns the names of the plugins whose manifests are not known.
func (s *Plugins) Unread() []string {
	var names []string
	for _, u := range s.UnreadBundles() {
		names = append(names, u.Name)
	}
	return names
}

// Open returns an instance of a bundle for a workflow's settings; settings that the
// bundle does not declare are dropped. The plugin starts with the first call of the
// instance, which also returns the error of refused settings. For a bundle that does not
// exist, the error is not_found.
func (s *Plugins) Open(_ context.Context, bundle string, settings tea.Settings) (host.Invoker, error) {
	inst, err := s.open(bundle, settings)
	if err != nil {
		return nil, err
	}
	return inst, nil
}

// grace is the time in which running calls can end when the host closes.
const grace = 2 * time.Second

// Close is [Plugins.Shutdown] with 2 s for running calls.
func (s *Plugins) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return s.Shutdown(ctx)
}
