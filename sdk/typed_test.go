package tea_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

type fetchParams struct {
	URL     string            `json:"url"`
	Retries int               `json:"retries,omitempty" default:"3"`
	Limit   *int              `json:"limit,omitempty" default:"10"`
	Headers map[string]string `json:"headers,omitempty"`
	Filter  struct {
		Name string `json:"name,omitempty"`
	} `json:"filter,omitzero"`
}

// shown writes what a typed function got.
func shown(_ context.Context, _ *tea.Request, p fetchParams) (string, error) {
	limit := "none"
	if p.Limit != nil {
		limit = fmt.Sprint(*p.Limit)
	}
	return fmt.Sprintf("%s %d %s %s", p.URL, p.Retries, limit, p.Filter.Name), nil
}

func TestTypedParameters(t *testing.T) {
	t.Parallel()
	action := tea.NewAction("web.fetch", "Fetches.", shown)
	for _, test := range []struct{ name, params, want, fault string }{
		{"defaults", `{"url":"u"}`, "u 3 10 ", ""},
		{"given", `{"url":"u","retries":0,"limit":0,"filter":{"name":"n"}}`, "u 0 0 n", ""},
		{"null is not absent", `{"url":"u","retries":null,"limit":null}`, "u 3 none ", ""},
		{"missing", `{"retries":1}`, "", `web.fetch needs the parameter "url"`},
		{"nothing", `null`, "", `web.fetch needs the parameter "url"`},
		{"unknown", `{"url":"u","zzz":1,"retrys":1}`, "", `web.fetch has no parameter "retrys"; did you mean "retries"?; has no parameter "zzz"`},
		{"unknown inside", `{"url":"u","filter":{"nam":1}}`, "", `web.fetch has no parameter "filter.nam"; did you mean "name"?`},
		{"wrong type", `{"url":3}`, "", `web.fetch: parameter "url": expected string, got integer 3`},
		{"wrong type inside", `{"url":"u","filter":{"name":[]}}`, "", `web.fetch: parameter "filter.name": expected string, got an array of 0 items`},
		{"wrong type behind a pointer", `{"url":"u","limit":"x"}`, "", `web.fetch: parameter "limit": expected integer or null, got string "x"`},
		{"fraction", `{"url":"u","retries":1.5}`, "", `web.fetch: parameter "retries": expected integer, got number 1.5`},
		{"no JSON", `{"url":`, "", `parameters of web.fetch: unexpected EOF`},
		{"more than one", `{"url":"u"} {}`, "", `parameters of web.fetch: unexpected data after the JSON value at byte 13`},
		{"no object", `[]`, "", `web.fetch: the parameters: expected object, got an array of 0 items`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resp, err := action.Handle(t.Context(), &tea.Request{Action: "web.fetch", Params: tea.RawPayload([]byte(test.params))})
			if test.fault != "" {
				var failure *tea.Error
				if !errors.As(err, &failure) || failure.Type != tea.ValidationError || failure.Message != test.fault {
					t.Fatalf("err = %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := resp.Result.Value(); err != nil || got != test.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

type counter struct{ n int }

func (c *counter) Add(_ context.Context, _ *tea.Request, p struct {
	By int `json:"by"`
},
) (map[string]int, error) {
	c.n += p.By
	return map[string]int{"n": c.n}, nil
}

func TestMethodNeedsItsInstance(t *testing.T) {
	t.Parallel()
	action := tea.NewMethod("count.add", "Adds.", (*counter).Add, tea.Idempotent(), tea.Streaming())
	if !action.Idempotent || !action.Streaming {
		t.Error("the options are lost")
	}
	req := &tea.Request{Action: "count.add", Params: tea.RawPayload([]byte(`{"by":2}`)), Instance: &counter{n: 1}}
	resp, err := action.Handle(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := resp.Result.Value()
	if d := cmp.Diff(any(map[string]any{"n": int64(3)}), got); err != nil || d != "" {
		t.Error(err, d)
	}
	req.Instance = nil
	if _, err = action.Handle(t.Context(), req); tea.AsError(err).Type != tea.InternalError {
		t.Errorf("err = %v", err)
	}
}

func ExampleNewMethod() {
	bundle := tea.Bundle{
		Name: "count", Version: "0.1.0",
		Actions: []tea.Action{tea.NewMethod("count.add", "Adds.", (*counter).Add)},
		Open:    func(context.Context, tea.Settings) (any, error) { return &counter{n: 40}, nil },
	}
	instance, err := bundle.NewInstance(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := instance.Invoke(context.Background(), &tea.Request{Action: "count.add", Params: tea.ValuePayload(map[string]any{"by": 2})})
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, _ := resp.Result.JSON()
	fmt.Println(string(raw))
	// Output: {"n":42}
}
