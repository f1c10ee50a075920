package pb_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/schema"
)

func TestManifestArrivesComplete(t *testing.T) {
	t.Parallel()
	want := tea.Manifest{
		Name: "mail", Version: "1.2.3", Description: "Sends mail.", Protocol: tea.ProtocolVersion,
		Actions: []tea.ActionInfo{{
			Name: "mail.send", Summary: "Sends one.", Streaming: true, Idempotent: true, Once: true,
			Params: schema.Of[struct{ To string }](), Result: schema.Of[struct{ ID string }](),
		}},
		Settings: map[string]*schema.Schema{"mail": schema.Of[struct{ Folder string }]()},
		Files:    []string{"mail.py"}, Env: []string{"MAILRC"}, StartTimeoutMS: 20_000, MemoryBytes: 5 << 30, Exclusive: []string{"mail.folder"},
		Dynamic: &tea.DynamicActions{File: "mail.folders_file", List: "mail.send"},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(want)) {
		if reflect.ValueOf(want).FieldByIndex(field.Index).IsZero() {
			t.Errorf("the test has no value for %s", field.Name)
		}
	}
	sent, err := pb.FromManifest(want)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	received := new(pb.Manifest)
	if err := proto.Unmarshal(raw, received); err != nil {
		t.Fatal(err)
	}
	got, err := pb.ToManifest(received)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-sent +received):\n%s", diff)
	}
}
