package teacmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// refreshDynamic stores the actions that depend on the settings of the
// workflow, for all bundles or the named ones, and prints the changes.
func (c *pluginRefreshCmd) refreshDynamic(a *app) error {
	secrets, err := a.readSecrets(c.Secrets, c.SecretsEnv)
	if err != nil {
		return err
	}
	a.mask = host.NewMask(secrets)
	h, err := a.openHost(c.pluginFlags, c.reportFlags, startPlugins, host.Options{})
	if err != nil {
		return err
	}
	defer h.Close()
	bundles := h.DynamicBundles()
	if len(c.Names) > 0 {
		bundles = slices.DeleteFunc(bundles, func(name string) bool { return !slices.Contains(c.Names, name) })
	}
	if len(bundles) == 0 {
		return pluginError(errors.New("none of the plugins has actions that depend on the settings of a workflow"))
	}
	for _, bundle := range bundles {
		list, err := h.LoadDynamicList(bundle, c.Workflow, c.loadOptions())
		if err != nil {
			return err
		}
		err = a.storeDynamic(bundle, list, secrets)
		if err = errors.Join(err, list.Workflow.Close()); err != nil {
			return err
		}
	}
	return nil
}

// storeDynamic lists the dynamic actions of one bundle and stores them.
func (a *app) storeDynamic(bundle string, list *host.DynamicList, secrets map[string]any) error {
	ctx, stop := stoppable()
	defer stop(nil)
	var err error
	if a.mask, err = list.Workflow.Mask(secrets); err != nil {
		return err
	}
	res, err := list.Workflow.Run(ctx, host.RunOptions{Input: list.Input, Secrets: secrets, Env: environment(), Durability: flow.DurabilityOff})
	if res == nil {
		return refused(err)
	}
	if res.Status != flow.Done {
		return a.callFailure(res)
	}
	text, err := value.Encode(a.mask.Value(res.State[host.CallResult]))
	if err != nil {
		return err
	}
	was, err := dynamicActions(list.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(a.out, "%s could not be read and is replaced: %v\n", list.File, err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "  "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	err = atomicfile.Write(list.File, 0o644, func(w io.Writer) error {
		_, err := w.Write(pretty.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	now, err := dynamicActions(list.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %d actions stored (%s)\n", bundle, len(now), list.File)
	for _, change := range changedActions(was, now) {
		fmt.Fprintln(a.out, "  "+change)
	}
	return nil
}

// dynamicActions returns the descriptions in a file of dynamic actions by name.
func dynamicActions(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var stored struct {
		Actions []json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	actions := map[string]string{}
	for _, raw := range stored.Actions {
		var info struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(raw, &info); err != nil {
			return nil, err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, err
		}
		actions[info.Name] = compact.String()
	}
	return actions, nil
}

// changedActions lists what differs between two sets of actions.
func changedActions(was, now map[string]string) []string {
	var lines []string
	for name, text := range now {
		switch before, known := was[name]; {
		case !known:
			lines = append(lines, "new: "+name)
		case before != text:
			lines = append(lines, "changed: "+name)
		}
	}
	for name := range was {
		if _, still := now[name]; !still {
			lines = append(lines, "removed: "+name)
		}
	}
	slices.Sort(lines)
	return lines
}
