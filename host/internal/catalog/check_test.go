package catalog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/catalog"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// echo is a plugin that answers with its parameters unchanged.
type echo struct{}

func (echo) Invoke(_ context.Context, req *tea.Request) (*tea.Response, error) {
	return &tea.Response{Result: req.Params}, nil
}

func (echo) Close() error { return nil }

// A plugin in another language gets complete parameters, or is not even
// started.
func TestPluginParametersAreCheckedBeforeTheCall(t *testing.T) {
	t.Parallel()
	type point struct {
		X int     `json:"x"`
		Y float64 `json:"y,omitempty" default:"1.5"`
	}
	type params struct {
		Name   string  `json:"name" minLength:"2"`
		Unit   string  `json:"unit,omitempty" default:"m" enum:"m,km"`
		Points []point `json:"points,omitempty"`
	}
	opened := 0
	c := catalog.New(nil)
	t.Cleanup(func() { _ = c.Close() })
	manifest := tea.Manifest{Name: "geo", Version: "1.0.0", Actions: []tea.ActionInfo{{Name: "geo.show", Params: schema.Of[params]()}}}
	open := func(context.Context, map[string]any) (catalog.Invoker, error) { opened++; return echo{}, nil }
	if err := c.Add("plugin", manifest, open); err != nil {
		t.Fatal(err)
	}
	_, err := c.Invoke(t.Context(), &tea.Request{Action: "geo.show", Params: tea.RawPayload([]byte(`{"name":"a","unit":"ft","points":[{"x":1.5}]}`))})
	var failure *tea.Error
	if !errors.As(err, &failure) || failure.Type != tea.ValidationError || len(failure.Details["errors"].([]any)) != 3 || opened > 0 {
		t.Errorf("got %v with %d starts", err, opened)
	}
	for given, want := range map[string]string{
		`{"name":"ab","points":[{"x":2.0},{"x":1,"y":null}],"unit":null}`: `{"name":"ab","points":[{"x":2.0,"y":1.5},{"x":1,"y":1.5}],"unit":"m"}`,
		`{"unit": "km", "name": "ab"}`:                                    `{"unit": "km", "name": "ab"}`, // nothing to add: the same bytes
	} {
		res, err := c.Invoke(t.Context(), &tea.Request{Action: "geo.show", Params: tea.RawPayload([]byte(given))})
		if err != nil {
			t.Fatal(err)
		}
		got, err := res.Result.JSON()
		if d := cmp.Diff(want, string(got)); err != nil || d != "" {
			t.Error(err, d)
		}
	}
}
