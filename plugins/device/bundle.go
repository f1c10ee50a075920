package device

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/statedir"
)

// Bundle is the set of actions, for serve.Main or for linking into a host.
//
// Actions that only read are idempotent. Actions that write are not: a host does not
// repeat a call that a crash interrupted.
func Bundle() tea.Bundle {
	parts := parts()
	b := tea.Bundle{
		Name:        "device",
		Version:     "0.1.0",
		Description: "Reads and controls machines and devices, within limits that the settings declare.",
		Settings:    map[string]*schema.Schema{guard.SettingsKey: schema.Of[guard.Settings]()},
		Env:         []string{statedir.Variable, settingsVariable},
	}
	b.Open = func(_ context.Context, s tea.Settings) (any, error) {
		s, err := ofOperator(s, slices.Sorted(maps.Keys(b.Settings)))
		if err != nil {
			return nil, err
		}
		guards, err := guard.Open(s)
		if err != nil {
			return nil, inFile(err)
		}
		opened, err := part.Open(parts, s, guards)
		return opened, inFile(err)
	}
	for _, p := range parts {
		b.Settings[p.Key] = p.Settings
		b.Actions = append(b.Actions, p.Actions...)
	}
	return b
}

// settingsVariable is the variable of the environment with the name of a file that
// replaces the settings of workflows.
const settingsVariable = "TEA_DEVICE_SETTINGS"

// ofOperator returns the settings in the file of the operator, if there is one. A
// workflow cannot have settings then.
func ofOperator(s tea.Settings, keys []string) (tea.Settings, error) {
	file := os.Getenv(settingsVariable)
	if file == "" {
		return s, nil
	}
	if len(s) > 0 {
		return nil, tea.Errorf(tea.PermissionDenied, "the workflow has settings.%s, but the settings of this device are in %s (%s): remove them from the workflow", slices.Sorted(maps.Keys(s))[0], file, settingsVariable)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "read the settings of this device (%s): %w", settingsVariable, err)
	}
	v, err := value.Decode(data)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if key := value.DuplicateKey(data, v); err == nil && key != "" {
		err = fmt.Errorf("duplicate key %q", key)
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s (%s): %w", file, settingsVariable, err)
	}
	for key := range s {
		if !slices.Contains(keys, key) {
			return nil, tea.Errorf(tea.ValidationError, "%s (%s): unknown key %q%s", file, settingsVariable, key, diag.Ending(key, keys))
		}
	}
	return s, nil
}

// inFile adds the name of the operator's file to a mistake in the settings.
func inFile(err error) error {
	file := os.Getenv(settingsVariable)
	if err == nil || file == "" {
		return err
	}
	e := tea.AsError(err)
	return tea.Errorf(e.Type, "%s (%s): %s", file, settingsVariable, e.Message)
}

// build is this build of the bundle. A file with_NAME.go, which the build tag of a part
// selects, adds a method that returns the part.
type build struct{}

// parts returns the parts of this build.
func parts() (all []part.Part) {
	var b any = build{}
	if b, ok := b.(interface{ Modbus() part.Part }); ok {
		all = append(all, b.Modbus())
	}
	if b, ok := b.(interface{ MQTT() part.Part }); ok {
		all = append(all, b.MQTT())
	}
	if b, ok := b.(interface{ OPCUA() part.Part }); ok {
		all = append(all, b.OPCUA())
	}
	if b, ok := b.(interface{ Serial() part.Part }); ok {
		all = append(all, b.Serial())
	}
	if b, ok := b.(interface{ GPIO() part.Part }); ok { // only on Linux
		all = append(all, b.GPIO())
	}
	if b, ok := b.(interface{ Command() part.Part }); ok {
		all = append(all, b.Command())
	}
	if b, ok := b.(interface{ System() part.Part }); ok {
		all = append(all, b.System())
	}
	return all
}
