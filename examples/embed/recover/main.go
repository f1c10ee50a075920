// Command recover fills three tanks, one after another. If it is killed, the next start
// continues the run: full tanks are not filled again.
//
//	go run ./recover -lose-power
//	go run ./recover
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

const definition = `
name: fill-tanks
nodes:
  - {name: first, uses: tank.fill, with: {tank: 1}}
  - {name: second, uses: tank.fill, with: {tank: 2}}
  - {name: third, uses: tank.fill, with: {tank: 3}}
`

func main() {
	dir := flag.String("runs", "runs", "directory of the checkpoints")
	losePower := flag.Bool("lose-power", false, "end the program when the second tank is to be filled")
	flag.Parse()
	if err := fill(context.Background(), *dir, *losePower); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fill continues each run that was cut off, or starts one if there is none.
func fill(ctx context.Context, dir string, losePower bool) error {
	h, err := host.New(host.Options{Actions: []tea.Action{tankFill(losePower)}})
	if err != nil {
		return err
	}
	defer h.Close()
	wf, err := h.Parse("fill.yaml", []byte(definition), host.LoadOptions{})
	if err != nil {
		return err
	}
	defer wf.Close()

	options := host.RunOptions{CheckpointDir: dir}
	unfinished, err := cutOff(dir)
	if err != nil {
		return err
	}
	if len(unfinished) == 0 {
		return report(wf.Run(ctx, options))
	}
	for _, run := range unfinished {
		fmt.Println("continue the run of", run.StartedAt.Format("15:04"))
		if err := report(wf.Resume(ctx, run.ID, options)); err != nil {
			return err
		}
	}
	return nil
}

// cutOff lists the runs that were interrupted because their process was killed or they were
// canceled.
func cutOff(dir string) ([]checkpoints.Entry, error) {
	runs, err := checkpoints.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := runs.List()
	var unfinished []checkpoints.Entry
	for _, run := range list {
		if run.Status == flow.Stopped {
			unfinished = append(unfinished, run)
		}
	}
	return unfinished, err
}

// report returns the error of a run: err if it could not start or be recorded, otherwise
// the error in the result.
func report(res *flow.Result, err error) error {
	if err != nil {
		return err
	}
	return res.Err
}

func tankFill(losePower bool) tea.Action {
	type params struct {
		Tank int `json:"tank" doc:"number of the tank" minimum:"1" maximum:"3"`
	}
	return tea.NewAction("tank.fill", "Fills a tank.", func(_ context.Context, _ *tea.Request, p params) (map[string]any, error) {
		if losePower && p.Tank == 2 {
			os.Exit(3)
		}
		fmt.Println("filled tank", p.Tank)
		return map[string]any{}, nil
	})
}
