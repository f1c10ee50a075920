package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/the-edge-agent/tea/client"
)

// A run is started, and the question that it asks is answered.
func Example() { //nolint:testableexamples // it needs a server
	c, err := client.New("http://localhost:8311", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	run, err := c.Start(ctx, "report", client.Start{Input: map[string]any{"day": "today"}, Key: "report of today"})
	if err != nil {
		log.Fatal(err)
	}
	if run, err = c.Wait(ctx, run.ID); err != nil {
		log.Fatal(err)
	}
	if run.Status == client.Waiting {
		run, err = c.Resume(ctx, run.ID, client.Resume{Answers: map[string]any{run.Pending[0].ID: "yes"}})
	}
	fmt.Println(run.Status, err)
}
