package checkpoints_test

import (
	"context"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

func Example() {
	dir, err := os.MkdirTemp("", "tea")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.New(host.Options{})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	wf, err := h.Parse("nightly.yaml", []byte("{name: nightly, nodes: [{name: a, interrupt: before}]}"), host.LoadOptions{})
	if err != nil {
		panic(err)
	}
	defer wf.Close()
	if _, err := wf.Run(context.Background(), host.RunOptions{CheckpointDir: dir}); err != nil {
		panic(err)
	}

	runs, err := checkpoints.Open(dir)
	if err != nil {
		panic(err)
	}
	list, err := runs.List()
	if err != nil {
		panic(err)
	}
	for _, run := range list {
		fmt.Println(run.Workflow, run.Status, run.Node)
	}
	// Output: nightly waiting a
}
