package reference

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

var update = flag.Bool("update", false, "rewrite testdata/reference.md")

type point struct {
	X float64 `json:"x" doc:"to the right" minimum:"0" maximum:"1"`
	Y float64 `json:"y" minimum:"-1"`
}

type drawParams struct {
	Points []point           `json:"points" doc:"the | corners" minItems:"3"`
	Tags   map[string]string `json:"tags,omitempty" doc:"free <b>texts</b>"`
	Style  struct {
		Color string   `json:"color,omitempty" enum:"red,blue" default:"red"`
		Names []string `json:"names,omitempty"`
	} `json:"style,omitempty"`
	Title string `json:"title,omitempty" minLength:"1" maxLength:"80"`
}

type drawResult struct {
	File string `json:"file" doc:"the name of the file"`
}

type drawSettings struct {
	Key string `json:"key,omitempty" secret:"true" doc:"the key of the service"`
	Dir string `json:"dir,omitempty" format:"path" default:"."`
}

func manifest() tea.Manifest {
	draw := func(context.Context, *tea.Request, drawParams) (drawResult, error) { return drawResult{}, nil }
	bundle := tea.Bundle{
		Name: "draw", Version: "1.0.0", Description: "Draws.\n# Not a heading",
		Settings: map[string]*schema.Schema{"draw": schema.Of[drawSettings]()},
		Env:      []string{"DISPLAY"}, Memory: 300 << 20, Exclusive: []string{"draw.dir"},
		Actions: []tea.Action{tea.NewAction("draw.shape", "Draws a shape.", draw, tea.Streaming(), tea.Idempotent())},
	}
	return bundle.Manifest()
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	got := Markdown(manifest())
	const golden = "testdata/reference.md"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// A schema that contains itself, as from a hostile manifest, ends.
func TestFieldsAreBounded(t *testing.T) {
	t.Parallel()
	s := &schema.Schema{Type: schema.Types{"object"}}
	s.Properties = &schema.Properties{{Name: "again", Schema: s}}
	if n := len(Fields(s)); n != maxDepth {
		t.Errorf("%d fields, want %d", n, maxDepth)
	}
	s.Properties = &schema.Properties{}
	if Fields(nil) != nil || Fields(s) != nil || Fields(&schema.Schema{Never: true}) != nil {
		t.Error("fields of a schema without any")
	}
}
