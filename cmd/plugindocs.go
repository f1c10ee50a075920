//go:build !noplugins

package teacmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/the-edge-agent/tea/host/reference"
	tea "github.com/the-edge-agent/tea/sdk"
)

func (c *pluginDocsCmd) Run(a *app) error {
	a.setReport(c.reportFlags)
	m, err := c.manifest(a)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.out, reference.Markdown(m))
	return err
}

// manifest returns the manifest of the plugin.
func (c *pluginDocsCmd) manifest(a *app) (tea.Manifest, error) {
	if !strings.ContainsRune(c.Plugin, os.PathSeparator) {
		set, err := a.findPlugins(c.pluginFlags, c.reportFlags)
		if err != nil {
			return tea.Manifest{}, err
		}
		found, err := set.named(c.Plugin)
		return found.Manifest, err
	}
	if strings.HasSuffix(c.Plugin, ".json") {
		return readManifest(c.Plugin)
	}
	if info, err := os.Stat(c.Plugin); err != nil || info.IsDir() {
		return tea.Manifest{}, usageErrorf("%s is not the binary of a plugin", absolute(c.Plugin))
	}
	ctx, stop := stoppable()
	defer stop(nil)
	output := &lastOutput{}
	process, err := startAsHost(ctx, absolute(c.Plugin), output)
	if err != nil {
		return tea.Manifest{}, pluginError(fmt.Errorf("%w%s", err, output.note()))
	}
	defer process.Close()
	return process.Manifest(), nil
}

func readManifest(file string) (m tea.Manifest, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return m, usageError(unreadable(file, err))
	}
	if err = json.Unmarshal(data, &m); err == nil {
		err = m.Check()
	}
	if err != nil {
		return m, pluginError(fmt.Errorf("%s is not the manifest of a plugin: %w", absolute(file), err))
	}
	return m, nil
}
