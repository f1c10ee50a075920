package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	starts := flag.Bool("starts", false, "measure bin/tea's start only, and fail where it takes more than its budget")
	builds := flag.Bool("builds", false, "measure the programs that tea build makes, and write docs/reference/builds.md")
	page := flag.Bool("page", false, "write docs/reference/performance.md from bin/bench.json")
	flag.Parse()
	var err error
	switch {
	case *starts:
		err = checkStarts(ctx, os.Stderr)
	case *page:
		err = writePage()
	case *builds:
		err = writeBuilds(ctx, os.Stderr)
	default:
		err = run(ctx, os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything. A missed limit is shown but is not an error, because a busy
// or slow machine is not a defect of the program. If a measurement fails, the other
// figures are still shown.
func run(ctx context.Context, out, progress io.Writer) error {
	var all []Figure
	var failed []error
	for _, measure := range []func(context.Context) ([]Figure, error){measureProcesses, measurePlugins, measureFanOut, measureFanOutModes, measureSizes, measureGo} {
		figures, err := measure(ctx)
		all = append(all, figures...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, show(out, progress, all))...)
}

// show prints the figures as a table and as JSON.
func show(out, progress io.Writer, all []Figure) error {
	if err := writeTable(progress, all); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(report{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Figures: all,
	})
}

// report is the JSON form.
type report struct {
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	CPUs    int      `json:"cpus"`
	Figures []Figure `json:"figures"`
}
