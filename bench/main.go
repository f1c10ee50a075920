package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything. A missed limit is shown, not an error: a machine
// that is busy or slow is no defect of the program.
func run(ctx context.Context, out, progress io.Writer) error {
	var all []Figure
	for _, measure := range []func(context.Context) ([]Figure, error){measureProcesses, measureSizes, measureGo} {
		figures, err := measure(ctx)
		if err != nil {
			return err
		}
		all = append(all, figures...)
	}
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
