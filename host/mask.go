package host

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Mask replaces the values of secrets in output. The zero Mask changes nothing.
// It is immutable and safe for concurrent use.
type Mask struct{ set *secret.Set }

// NewMask returns a mask for secrets alone. [Workflow.Mask] also includes secret
// settings.
func NewMask(secrets map[string]any) Mask { return Mask{secret.New(secrets, nil)} }

// Equal reports whether both masks replace the same values.
func (m Mask) Equal(other Mask) bool { return m.set.Equal(other.set) }

// Value returns v, which must be in the value model, with *** in place of
// secrets. It does not change v.
func (m Mask) Value(v any) any { return m.set.Redact(v) }

// Text is Value for a text.
func (m Mask) Text(text string) string { return m.set.Text(text) }

// Stream returns a filter for a streamed text, in which a secret can be split across
// pieces.
func (m Mask) Stream() *MaskStream { return m.set.Stream() }

// MaskStream is a [Mask] for one streamed text. It is not safe for concurrent use.
type MaskStream = secret.Stream

// Mask returns the mask for a run of the workflow with these secrets. The error
// reports a template in the settings that cannot be evaluated.
func (wf *Workflow) Mask(secrets map[string]any) (Mask, error) {
	s, err := wf.resolve(secrets)
	return Mask{s.set}, err
}

// resolved is a workflow with the secrets of a run.
type resolved struct {
	set      *secret.Set
	settings map[string]any
	actions  engine.Actions
}

// resolve resolves the settings with secrets. Runs with equal settings share their
// bundles.
func (wf *Workflow) resolve(secrets map[string]any) (resolved, error) {
	settings, err := wf.graph.Settings.Resolve(context.Background(), secrets)
	if err != nil {
		return resolved{}, fmt.Errorf("settings: %w", err)
	}
	wf.warnShort.Do(func() { wf.warnOfShort(secrets, settings) })
	if !wf.graph.Settings.UseSecrets() {
		wf.hide.Do(func() { wf.hidden = wf.declared.Secrets(settings) })
		return resolved{settings: settings, set: secret.New(secrets, wf.hidden), actions: wf.catalog}, nil
	}
	// Runs share settings that contain no templates.
	settings = wf.declared.AbsolutePaths(wf.spec, value.Clone(settings).(map[string]any))
	key, err := value.Encode(settings)
	if err != nil {
		return resolved{}, fmt.Errorf("settings: %w", err)
	}
	wf.mu.Lock()
	defer wf.mu.Unlock()
	if wf.catalogs[string(key)] == nil {
		wf.catalogs[string(key)] = wf.catalog.Bind(settings)
	}
	return resolved{settings: settings, set: secret.New(secrets, wf.declared.Secrets(settings)), actions: wf.catalogs[string(key)]}, nil
}

// warnOfShort logs the secrets that are too short to be masked inside other text.
func (wf *Workflow) warnOfShort(secrets, settings map[string]any) {
	for _, name := range secret.New(secrets, nil).Short() {
		wf.host.log.Warn("a secret is too short to be masked inside other text; use a longer one", "secret", name)
	}
	for _, path := range wf.declared.ShortSecrets(settings) {
		wf.host.log.Warn("a secret setting has a value that is too short to be masked", "setting", path)
	}
}
