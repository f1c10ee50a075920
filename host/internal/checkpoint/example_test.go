package checkpoint_test

import (
	"fmt"
	"os"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
)

// A run that stops at a question is taken up again where it was.
func Example() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := checkpoint.OpenStore(dir)
	if err != nil {
		panic(err)
	}

	id := checkpoint.NewRunID(time.Now())
	journal, err := store.Create(checkpoint.Header{RunID: id, Workflow: "report", StartedAt: time.Now()}, flow.DurabilitySync)
	if err != nil {
		panic(err)
	}
	err = journal.Append(
		checkpoint.Record{Kind: checkpoint.KindStart, Body: []byte(`{"input":{}}`)},
		checkpoint.Record{Kind: "finish", Path: "fetch", Body: []byte(`{"update":{"rows":3}}`)},
		checkpoint.Record{Kind: checkpoint.KindStatus, Path: "ask", Body: []byte(`{"status":"waiting","node":"ask"}`)},
	)
	if err != nil {
		panic(err)
	}
	if err := journal.Close(); err != nil {
		panic(err)
	}

	info, err := store.Info(id)
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Status, "at", info.Node)

	journal, contents, err := store.Open(id, flow.DurabilitySync)
	if err != nil {
		panic(err)
	}
	defer journal.Close()
	for _, r := range contents.Records {
		fmt.Println(r.Seq, r.Kind, r.Path, string(r.Body))
	}
	// Output:
	// waiting at ask
	// 1 start  {"input":{}}
	// 2 finish fetch {"update":{"rows":3}}
	// 3 status ask {"status":"waiting","node":"ask"}
}
