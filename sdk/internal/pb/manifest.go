package pb

import (
	"encoding/json"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// FromManifest converts a manifest to the wire.
func FromManifest(m tea.Manifest) (*Manifest, error) {
	out := &Manifest{
		Name: m.Name, Version: m.Version, Description: m.Description, Protocol: int32(m.Protocol), Files: m.Files,
		Env: m.Env, StartTimeoutMs: m.StartTimeoutMS, MemoryBytes: m.MemoryBytes, Exclusive: m.Exclusive,
	}
	for _, info := range m.Actions {
		action, err := FromAction(info)
		if err != nil {
			return nil, err
		}
		out.Actions = append(out.Actions, action)
	}
	for key, s := range m.Settings {
		raw, err := fromSchema(s)
		if err != nil {
			return nil, fmt.Errorf("schema of settings.%s: %w", key, err)
		}
		if out.SettingsSchemaJson == nil {
			out.SettingsSchemaJson = map[string][]byte{}
		}
		out.SettingsSchemaJson[key] = raw
	}
	if d := m.Dynamic; d != nil {
		out.Dynamic = &DynamicActions{File: d.File, List: d.List}
	}
	return out, nil
}

// ToManifest converts a manifest from the wire.
func ToManifest(m *Manifest) (tea.Manifest, error) {
	out := tea.Manifest{
		Name: m.GetName(), Version: m.GetVersion(), Description: m.GetDescription(), Protocol: int(m.GetProtocol()),
		Actions: make([]tea.ActionInfo, 0, len(m.GetActions())), Files: m.GetFiles(),
		Env: m.GetEnv(), StartTimeoutMS: m.GetStartTimeoutMs(), MemoryBytes: m.GetMemoryBytes(), Exclusive: m.GetExclusive(),
	}
	for _, a := range m.GetActions() {
		info, err := ToAction(a)
		if err != nil {
			return tea.Manifest{}, err
		}
		out.Actions = append(out.Actions, info)
	}
	for key, raw := range m.GetSettingsSchemaJson() {
		s, err := toSchema(raw)
		if err != nil {
			return tea.Manifest{}, fmt.Errorf("schema of settings.%s: %w", key, err)
		}
		if out.Settings == nil {
			out.Settings = map[string]*schema.Schema{}
		}
		out.Settings[key] = s
	}
	if d := m.GetDynamic(); d != nil {
		out.Dynamic = &tea.DynamicActions{File: d.GetFile(), List: d.GetList()}
	}
	return out, nil
}

// FromAction converts an action's description to the wire.
func FromAction(info tea.ActionInfo) (*Action, error) {
	params, err := fromSchema(info.Params)
	if err != nil {
		return nil, fmt.Errorf("schema of the parameters of %s: %w", info.Name, err)
	}
	result, err := fromSchema(info.Result)
	if err != nil {
		return nil, fmt.Errorf("schema of the result of %s: %w", info.Name, err)
	}
	return &Action{Name: info.Name, Summary: info.Summary, ParamsSchemaJson: params, ResultSchemaJson: result, Streaming: info.Streaming, Idempotent: info.Idempotent, Once: info.Once, Reads: info.Reads, DryRun: info.DryRun}, nil
}

// ToAction converts an action's description from the wire.
func ToAction(a *Action) (tea.ActionInfo, error) {
	params, err := toSchema(a.GetParamsSchemaJson())
	if err != nil {
		return tea.ActionInfo{}, fmt.Errorf("schema of the parameters of %s: %w", a.GetName(), err)
	}
	result, err := toSchema(a.GetResultSchemaJson())
	if err != nil {
		return tea.ActionInfo{}, fmt.Errorf("schema of the result of %s: %w", a.GetName(), err)
	}
	return tea.ActionInfo{Name: a.GetName(), Summary: a.GetSummary(), Params: params, Result: result, Streaming: a.GetStreaming(), Idempotent: a.GetIdempotent(), Once: a.GetOnce(), Reads: a.GetReads(), DryRun: a.GetDryRun()}, nil
}

func fromSchema(s *schema.Schema) ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	return json.Marshal(s)
}

func toSchema(raw []byte) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	s := new(schema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	return s, nil
}
