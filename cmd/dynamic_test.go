package teacmd

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/serve"
)

type radioSettings struct {
	Stations map[string]string `json:"stations,omitempty"`
	Key      string            `json:"key,omitempty" secret:"true"`
	File     string            `json:"file,omitempty" format:"path" default:"stations.json"`
}

type tuning struct {
	Volume int `json:"volume"`
}

// radio is a plugin with an action for each station in the settings.
func radio() {
	list := func(s *radioSettings, _ context.Context, _ *tea.Request, _ struct{}) (map[string]any, error) {
		if s.Key != "hunter2" {
			return nil, tea.Errorf(tea.PermissionDenied, "wrong key %q", s.Key)
		}
		actions := []any{}
		for name, summary := range s.Stations {
			actions = append(actions, map[string]any{"name": "radio." + name, "summary": summary, "params": schema.Of[tuning]()})
		}
		return map[string]any{"actions": actions}, nil
	}
	play := func(_ context.Context, req *tea.Request) (*tea.Response, error) {
		return tea.Respond(map[string]any{"playing": req.Action}), nil
	}
	serve.Main(tea.Bundle{
		Name: "radio", Version: "1.0.0", Settings: map[string]*schema.Schema{"radio": schema.Of[radioSettings]()},
		Open: func(_ context.Context, from tea.Settings) (any, error) {
			s := new(radioSettings)
			return s, from.Decode("radio", s)
		},
		Actions: []tea.Action{tea.NewMethod("radio.list", "Lists the stations.", list)},
		Dynamic: &tea.Dynamic{DynamicActions: tea.DynamicActions{File: "radio.file", List: "radio.list"}, Handle: play},
	})
}
