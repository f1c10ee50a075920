package transfer_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

// A large graph is kept in a temporary file until all keys are known.
func TestALargeGraphMLIsReadAgain(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := transfer.NewWriter(transfer.GraphML, &file)
	defer transfer.Discard(w)
	const n = 30
	text := strings.Repeat("x", 200_000)
	for i := range n {
		if err := w.Entity(&store.Entity{ID: fmt.Sprint(i), Type: "t", Text: text, Properties: fmt.Appendf(nil, `{"p%d":%d}`, i, i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	read := 0
	sink := transfer.Sink{Entity: func(e *store.Entity) error {
		if want := fmt.Sprintf(`{"p%d":%d}`, read, read); e.ID != fmt.Sprint(read) || e.Text != text || string(e.Properties) != want {
			t.Errorf("%s has the properties %s and a text of %d bytes", e.ID, e.Properties, len(e.Text))
		}
		read++
		return nil
	}}
	if err := transfer.Read(transfer.GraphML, sink, []transfer.Input{{Reader: &file}}); err != nil || read != n {
		t.Errorf("%d entities were read, %v", read, err)
	}
}
