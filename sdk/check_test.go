package tea_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

type plotParams struct {
	Name   string           `json:"name" minLength:"2" maxLength:"4"`
	Mode   string           `json:"mode,omitempty" enum:"fast,slow" default:"fast"`
	Level  int              `json:"level,omitempty" enum:"1,2"`
	Share  *float64         `json:"share,omitempty" minimum:"0" maximum:"1"`
	Code   string           `json:"code,omitempty" pattern:"^[a-z]+$"`
	Points []point          `json:"points" minItems:"1"`
	More   map[string]point `json:"more,omitempty"`
}

type point struct {
	X     float64  `json:"x"`
	Y     float64  `json:"y" default:"2.5"`
	Label string   `json:"label,omitempty" maxLength:"3" default:"p"`
	Next  []string `json:"next,omitempty" minItems:"1"`
}

// The tags also apply to values that are known only at run time.
func TestParametersAreCheckedAgainstTheirTags(t *testing.T) {
	t.Parallel()
	action := tea.NewAction("plot.draw", "Draws.", func(_ context.Context, _ *tea.Request, p plotParams) (plotParams, error) { return p, nil })
	for _, test := range []struct{ name, params, fault string }{
		{"all right", `{"name":"ab","points":[{"x":1}],"share":1,"code":"a","level":2,"mode":"slow"}`, ""},
		{"null is absent", `{"name":"ab","points":[{"x":1,"label":null}],"share":null,"mode":null,"level":null}`, ""},
		{"too short", `{"name":"ä","points":[{"x":1}]}`, `plot.draw: parameter "name": must have at least 2 characters, has 1`},
		{"too long", `{"name":"abcde","points":[{"x":1}]}`, `plot.draw: parameter "name": must have at most 4 characters, has 5`},
		{"not in the list", `{"name":"ab","points":[{"x":1}],"mode":"medium"}`, `plot.draw: parameter "mode": must be one of "fast", "slow"; got "medium"`},
		{"number not in the list", `{"name":"ab","points":[{"x":1}],"level":3}`, `plot.draw: parameter "level": must be one of 1, 2; got 3`},
		{"too small", `{"name":"ab","points":[{"x":1}],"share":-0.5}`, `plot.draw: parameter "share": must be at least 0, got -0.5`},
		{"too large", `{"name":"ab","points":[{"x":1}],"share":1.5}`, `plot.draw: parameter "share": must be at most 1, got 1.5`},
		{"another form", `{"name":"ab","points":[{"x":1}],"code":"A"}`, `plot.draw: parameter "code": must match the pattern ^[a-z]+$, got "A"`},
		{"too few", `{"name":"ab","points":[]}`, `plot.draw: parameter "points": must have at least 1 item, has 0`},
		{"missing inside", `{"name":"ab","points":[{"x":1},{"y":1}]}`, `plot.draw needs the parameter "points[1].x"`},
		{"wrong inside", `{"name":"ab","points":[{"x":1}],"more":{"k":{"x":1,"label":"long"}}}`, `plot.draw: parameter "more.k.label": must have at most 3 characters, has 4`},
		{"whole float", `{"name":"ab","points":[{"x":1}],"level":2.0}`, ""},
		{"null inside a list", `{"name":"ab","points":[null]}`, `plot.draw: parameter "points[0]": expected object, got null`},
		{"null for a required one", `{"name":null,"points":[{"x":1}]}`, `plot.draw needs the parameter "name"`},
		{"several at once", `{"points":[{"x":1}],"share":2,"level":"1","nane":"ab"}`, `plot.draw needs the parameter "name"; parameter "level": expected integer, got string "1"; parameter "level": must be one of 1, 2; got "1"; has no parameter "nane"; did you mean "name"?; parameter "share": must be at most 1, got 2`},
		{"unknown inside", `{"name":"ab","points":[{"x":1,"lable":"l"}]}`, `plot.draw has no parameter "points[0].lable"; did you mean "label"?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := action.Handle(t.Context(), &tea.Request{Action: "plot.draw", Params: tea.RawPayload([]byte(test.params))})
			if test.fault == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || e.Message != test.fault {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDefaultsInsideOfParameters(t *testing.T) {
	t.Parallel()
	action := tea.NewAction("plot.draw", "Draws.", func(_ context.Context, _ *tea.Request, p plotParams) (plotParams, error) { return p, nil })
	given := map[string]any{"name": "ab", "points": []any{map[string]any{"x": 1.0}, map[string]any{"x": int64(2), "y": int64(0), "label": "q"}}, "more": map[string]any{"k": map[string]any{"x": 3.0}}}
	resp, err := action.Handle(t.Context(), &tea.Request{Action: "plot.draw", Params: tea.ValuePayload(given)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := resp.Result.Value()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "ab", "mode": "fast",
		"points": []any{map[string]any{"x": 1.0, "y": 2.5, "label": "p"}, map[string]any{"x": 2.0, "y": 0.0, "label": "q"}},
		"more":   map[string]any{"k": map[string]any{"x": 3.0, "y": 2.5, "label": "p"}},
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(given["points"].([]any)[0].(map[string]any)) != 1 {
		t.Error("the caller's parameters were changed")
	}
}

// A handler that calls another with other parameters does not get around the
// check of those.
func TestForwardedRequestsAreChecked(t *testing.T) {
	t.Parallel()
	inner := tea.NewAction("plot.draw", "Draws.", func(_ context.Context, _ *tea.Request, p plotParams) (plotParams, error) { return p, nil })
	outer := inner
	outer.Handle = func(ctx context.Context, req *tea.Request) (*tea.Response, error) {
		other := *req
		other.Params = tea.RawPayload([]byte(`{"name":"x","points":[]}`))
		return inner.Handle(ctx, &other)
	}
	instance, err := (&tea.Bundle{Name: "plot", Version: "1.0.0", Actions: []tea.Action{outer}}).NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = instance.Invoke(t.Context(), &tea.Request{Action: "plot.draw", Params: tea.RawPayload([]byte(`{"name":"ab","points":[{"x":1}]}`))})
	if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || len(e.Details["errors"].([]any)) != 2 {
		t.Errorf("got %v", err)
	}
}
