package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	starts := flag.Bool("starts", false, "measure bin/tea's start only, and fail where it takes more than its budget")
	builds := flag.Bool("builds", false, "measure the programs that tea build makes, and write docs/reference/builds.md")
	page := flag.Bool("page", false, "write docs/reference/performance.md from bin/bench.json")
	growth := flag.Bool("growth", false, "measure the table growth only, and replace it in bin/bench.json")
	times := flag.Int("times", 5, "number of measurements of each row of the table growth")
	flag.Parse()
	var err error
	switch {
	case *starts:
		err = checkStarts(ctx, os.Stderr)
	case *page:
		err = writePage()
	case *growth:
		err = updateGrowth(ctx, *times, os.Stderr)
	case *builds:
		err = writeBuilds(ctx, os.Stderr)
	default:
		err = run(ctx, *times, os.Stdout, os.Stderr)
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
func run(ctx context.Context, times int, out, progress io.Writer) error {
	var all []Figure
	var failed []error
	for _, measure := range []func(context.Context) ([]Figure, error){measureProcesses, measurePlugins, measureFanOut, measureFanOutModes, measureSizes, measureGo} {
		figures, err := measure(ctx)
		all = append(all, figures...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	r := newReport()
	r.Figures = all
	var err error
	r.Times = times
	if r.Growth, r.Load, err = measureGrowth(ctx, times); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(append(failed, r.show(out, progress))...)
}

// updateGrowth measures the table "growth" and replaces it in bin/bench.json, if there is one.
func updateGrowth(ctx context.Context, times int, progress io.Writer) error {
	r, err := readReport()
	if errors.Is(err, fs.ErrNotExist) {
		r, err = newReport(), nil
	}
	if err != nil {
		return err
	}
	r.Times = times
	if r.Growth, r.Load, err = measureGrowth(ctx, times); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := r.show(&text, progress); err != nil {
		return err
	}
	return os.WriteFile(reportFile, text.Bytes(), 0o600)
}

// show prints the figures as tables and as JSON.
func (r *report) show(out, progress io.Writer) error {
	if err := writeTable(progress, r.Figures); err != nil {
		return err
	}
	t := tabwriter.NewWriter(progress, 0, 0, 2, ' ', tabwriter.AlignRight)
	growthTable(r.Growth, func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") })
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(progress, r.quiet())
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// reportFile is the JSON of the last measurement.
var reportFile = filepath.Join("bin", "bench.json")

func readReport() (*report, error) {
	data, err := os.ReadFile(reportFile)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", reportFile, err)
	}
	return r, nil
}

func newReport() *report {
	return &report{Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
}

// report is the JSON form.
type report struct {
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	CPUs    int      `json:"cpus"`
	Figures []Figure `json:"figures"`
	// Growth has the medians of Times measurements.
	Growth []Point `json:"growth"`
	Times  int     `json:"times"`
	// Load is the load average before and after the table "growth" was measured.
	Load [2]float64 `json:"load"`
}

// isQuiet reports whether no other work disturbed the table "growth".
func (r *report) isQuiet() bool { return r.Load[0] <= 0.5 && r.Load[1] <= float64(r.CPUs)+0.5 }

// quiet returns the sentence about the load for the page.
func (r *report) quiet() string {
	load := fmt.Sprintf("the load average was %.1f before the measurements and %.1f after them.", r.Load[0], r.Load[1])
	if r.isQuiet() {
		return "The machine was quiet: " + load
	}
	return "The machine was not quiet, so only CPU times can be compared: " + load
}
