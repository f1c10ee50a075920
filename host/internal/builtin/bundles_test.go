package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/builtin"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

func TestBundlesOfferTheirActions(t *testing.T) {
	t.Parallel()
	var names []string
	for _, b := range builtin.Bundles(builtin.Options{Version: "1.0.0"}) {
		if err := b.Check(); err != nil {
			t.Error(err)
		}
		for _, a := range b.Actions {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	want := strings.Fields(`csv.parse csv.stringify data.filter data.merge data.validate file.append file.delete file.exists file.list file.read file.write
		http.delete http.get http.patch http.post http.put http.request json.parse json.stringify json.transform time.sleep trace.end trace.log trace.start`)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The reference and the editors' completion are made of the schemas.
func TestSchemasCompileAndDocumentEveryMember(t *testing.T) {
	t.Parallel()
	for _, b := range builtin.Bundles(builtin.Options{Version: "1.0.0"}) {
		for _, a := range b.Actions {
			documented(t, a.Name+" params", a.Params)
			documented(t, a.Name+" result", a.Result)
			if a.Result.Properties.Get("success") == nil {
				t.Errorf("the result of %s has no success", a.Name)
			}
		}
		for key, s := range b.Settings {
			documented(t, "settings."+key, s)
		}
	}
}

func documented(t *testing.T, what string, s *schema.Schema) {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if _, err := jsonschema.Compile(json.RawMessage(raw)); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	members(t, what, s)
}

func members(t *testing.T, what string, s *schema.Schema) {
	if s == nil {
		return
	}
	members(t, what+"[]", s.Items)
	if s.Properties == nil {
		return
	}
	for _, p := range *s.Properties {
		if p.Schema.Description == "" {
			t.Errorf("%s.%s has no doc tag", what, p.Name)
		}
		members(t, what+"."+p.Name, p.Schema)
	}
}
