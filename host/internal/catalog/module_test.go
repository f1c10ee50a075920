package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/catalog"
	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
)

const measures = `
return {
	__tea_actions__ = {
		area = {params = {
			type = "object", required = {"r"}, additionalProperties = false,
			properties = {
				r = {type = "number", minimum = 0},
				unit = {type = "string", default = "m"},
				marks = {type = "array", items = {type = "object", required = {"at"}, properties = {at = {type = "integer"}}}},
			},
		}},
		broken = {params = {type = "nothing that JSON has"}},
	},
	register_actions = function(registry)
		registry.area = function(state, params) return {params = params} end
		registry.broken = function(state, params) return {params = params} end
		registry.free = function(state, params) return {params = params} end
	end,
}`

type object = map[string]any

func call(t *testing.T, action string, params any) (any, error) {
	t.Helper()
	rt := script.New(script.Options{})
	m, err := rt.CompileModule(script.Source{Name: "geo.lua", Text: measures})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.FindActions(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	manifest, err := catalog.ModuleManifest("geo", "geo.lua", m)
	if err == nil || !strings.Contains(err.Error(), `params of broken: schema at type: unknown type "nothing that JSON has"`) {
		t.Errorf("err = %v", err)
	}
	c := catalog.New(nil)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Add("lua", manifest, catalog.Module("geo", m, nil, nil)); err != nil {
		t.Fatal(err)
	}
	res, err := c.Invoke(context.Background(), &tea.Request{Action: action, Params: tea.ValuePayload(params)})
	if err != nil {
		return nil, err
	}
	v, err := res.Result.Value()
	if err != nil {
		t.Fatal(err)
	}
	return v.(object)["params"], nil
}

func TestModuleParametersAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		action string
		params any
		want   any
		err    string
	}{
		"fits":          {"geo.area", object{"r": 2.5, "unit": "km"}, object{"r": 2.5, "unit": "km"}, ""},
		"default":       {"geo.area", object{"r": int64(2)}, object{"r": int64(2), "unit": "m"}, ""},
		"other name":    {"actions.geo_area", object{"r": int64(2)}, object{"r": int64(2), "unit": "m"}, ""},
		"missing":       {"geo.area", object{"unit": "km"}, nil, `geo.area needs the parameter "r"`},
		"none":          {"geo.area", nil, nil, `geo.area needs the parameter "r"`},
		"wrong":         {"geo.area", object{"r": "2"}, nil, `geo.area: parameter "r": expected number, got string "2"`},
		"unknown":       {"geo.area", object{"r": 1.5, "units": "km"}, nil, `geo.area has no parameter "units"; did you mean "unit"?`},
		"nested":        {"geo.area", object{"r": 1.5, "marks": []any{object{"at": true}}}, nil, `geo.area: parameter "marks[0].at": expected integer, got boolean true`},
		"nested member": {"geo.area", object{"r": 1.5, "marks": []any{object{}}}, nil, `geo.area needs the parameter "marks[0].at"`},
		"no object":     {"geo.area", []any{int64(1)}, nil, `geo.area: the parameters: expected object, got an array of 1 item`},
		"no schema":     {"geo.free", object{"x": "y"}, object{"x": "y"}, ""},
		"broken schema": {"geo.broken", object{"x": "y"}, object{"x": "y"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, test.action, test.params)
			if test.err != "" {
				var failure *tea.Error
				if !errors.As(err, &failure) || failure.Type != tea.ValidationError || failure.Message != test.err {
					t.Fatalf("got %v, %v; want a validation_error: %s", got, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDefaultsLeaveTheCallersParametersAlone(t *testing.T) {
	t.Parallel()
	params := object{"r": int64(2)}
	if _, err := call(t, "geo.area", params); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(object{"r": int64(2)}, params); d != "" {
		t.Error(d)
	}
}
