package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

type vaultSettings struct {
	Key  string `json:"key,omitempty" secret:"true"`
	Name string `json:"name,omitempty"`
	File string `json:"file,omitempty" format:"path" default:"here.txt"`
	Dir  string `json:"dir,omitempty" format:"path"`
}

// vault is a bundle whose action returns the settings that it was opened with.
func vault() *tea.Bundle {
	return &tea.Bundle{
		Name: "vault", Version: "1.0.0", Settings: map[string]*schema.Schema{"vault": schema.Of[vaultSettings]()},
		Open: func(_ context.Context, from tea.Settings) (any, error) {
			s := new(vaultSettings)
			return s, from.Decode("vault", s)
		},
		Actions: []tea.Action{tea.NewAction("vault.show", "Shows.", func(_ context.Context, req *tea.Request, _ struct{}) (vaultSettings, error) {
			return *req.Instance.(*vaultSettings), nil
		})},
	}
}

func loadVault(t *testing.T, dir, text string, o host.LoadOptions) *host.Workflow {
	t.Helper()
	file := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Options{Bundles: []*tea.Bundle{vault()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	wf, err := h.Load(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wf.Close() })
	return wf
}

func TestSettingsHoldTheSecretsOfTheirRun(t *testing.T) {
	t.Parallel()
	wf := loadVault(t, t.TempDir(), `
settings: {vault: {key: "{{ secrets.a }}-{{ secrets.b.c }}"}}
nodes: [{name: a, uses: vault.show, output: {key: "{{ result.key }}", root: "{{ settings.vault.key }}"}}]
`[1:], host.LoadOptions{Overlays: nil, Config: `{"settings": {"vault": {"name": "plain"}}}`})
	var runs sync.WaitGroup
	for i := range 8 {
		runs.Go(func() {
			key := fmt.Sprintf("first-%d", i%2)
			res, err := wf.Run(t.Context(), host.RunOptions{Secrets: map[string]any{"a": key, "b": map[string]any{"c": "second"}}})
			if err != nil {
				t.Error(err)
				return
			}
			want := map[string]any{"key": key + "-second", "root": key + "-second"}
			if diff := cmp.Diff(want, res.State); diff != "" {
				t.Error(diff)
			}
		})
	}
	runs.Wait()
}

func TestSecretSettingIsMasked(t *testing.T) {
	t.Parallel()
	wf := loadVault(t, t.TempDir(), `
settings: {vault: {key: "${KEY}", name: "${NAME}"}}
nodes: [{name: a, uses: vault.show}, {name: b, run: "tea.log('info', state.key .. state.name)"}]
`, host.LoadOptions{LookupEnv: func(name string) (string, bool) {
		return map[string]string{"KEY": "k-0123456789", "NAME": "n-0123456789"}[name], true
	}})
	dir := t.TempDir()
	var events strings.Builder
	res, err := wf.Run(t.Context(), host.RunOptions{CheckpointDir: dir, Events: func(e flow.Event) { fmt.Fprintln(&events, e.Fields) }})
	if err != nil || res.State["key"] != "k-0123456789" {
		t.Fatal(res, err)
	}
	if text := events.String(); strings.Contains(text, "k-01") || !strings.Contains(text, "***n-0123456789") {
		t.Error(text)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), "k-0123456789") {
			t.Errorf("%s holds the key (%v)", file, err)
		}
	}
	mask, err := wf.Mask(nil)
	if err != nil || mask.Text("k-0123456789 n-0123456789") != "*** n-0123456789" {
		t.Error(mask.Text("k-0123456789 n-0123456789"), err)
	}
}

func TestPathsInSettingsAreRelativeToTheirFile(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	if err := os.Mkdir(filepath.Join(dir, "conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "conf", "over.yaml")
	if err := os.WriteFile(overlay, []byte("settings: {vault: {dir: ../data}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const nodes = "\nnodes: [{name: a, uses: vault.show, output: {file: '{{ result.file }}', dir: '{{ result.dir }}'}}]\n"
	for _, c := range []struct {
		settings string
		o        host.LoadOptions
		file     string
		dir      any // nil = not set
	}{
		{"", host.LoadOptions{}, filepath.Join(dir, "here.txt"), nil},
		{"settings: {vault: {file: a/b.txt, dir: /abs}}", host.LoadOptions{}, filepath.Join(dir, "a/b.txt"), "/abs"},
		{"settings: {vault: {file: '{{ secrets.f }}.txt'}}", host.LoadOptions{Overlays: []string{overlay}}, filepath.Join(dir, "secret.txt"), filepath.Join(dir, "data")},
		{"", host.LoadOptions{Config: `{"settings": {"vault": {"dir": "data"}}}`}, filepath.Join(dir, "here.txt"), filepath.Join(cwd, "data")},
	} {
		wf := loadVault(t, dir, c.settings+nodes, c.o)
		res, err := wf.Run(t.Context(), host.RunOptions{Secrets: map[string]any{"f": "secret"}})
		if err != nil || res.State["file"] != c.file || res.State["dir"] != c.dir {
			t.Errorf("%s: %v, %v; want %s, %v", c.settings, res, err, c.file, c.dir)
		}
	}
}
