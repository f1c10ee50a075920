package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ptr(v float64) *float64 { return &v }

func TestFiguresOfBenchmarkOutput(t *testing.T) {
	t.Parallel()
	const output = `goos: linux
pkg: github.com/the-edge-agent/tea/host
BenchmarkChain3-2   	  217018	      5500 ns/op	    2832 B/op	      34 allocs/op
BenchmarkJournal/after-100-2	       1	   1000 ns/op	     12.5 file-bytes/step
BenchmarkChain/100-2	       1	   9000 ns/op	     2500 median-ns/step	 3000000 again-ns/op	      32 B/op
BenchmarkSearch-2	       1	   4000 ns/op	     9.00 hits
PASS
`
	results, err := parseBench(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	s := suite{Prefix: "engine", Promises: []promise{{Benchmark: "Chain3", Metric: "ns/op", Unit: "us", Scale: 1e-3, Limit: 5}}}
	var got []Figure
	for _, r := range results {
		got = append(got, s.figures(r)...)
	}
	want := []Figure{
		{Name: "engine Chain3", Value: 5.5, Unit: "us", Limit: 5, Bytes: ptr(2832), Allocs: ptr(34)},
		{Name: "engine Journal/after-100", Value: 1, Unit: "us"},
		{Name: "engine Journal/after-100, file per step", Value: 12.5, Unit: "bytes"},
		{Name: "engine Chain/100, median per step", Value: 2.5, Unit: "us", Bytes: ptr(32)},
		{Name: "engine Chain/100, again", Value: 3, Unit: "ms"},
		{Name: "engine Search", Value: 4, Unit: "us"},
		{Name: "engine Search", Value: 9, Unit: "hits"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTableMarksAMissedLimit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := writeTable(&b, []Figure{{Name: "slow", Value: 12.3456, Unit: "ms", Limit: 10}, {Name: "fast", Value: 0.25, Unit: "ms", Limit: 10}, {Name: "other", Value: 1234567, Unit: "B"}})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"figure", "value", "unit", "limit", "B/op", "allocs/op"},
		{"slow", "12.35", "ms", "10", "MISSED"},
		{"fast", "0.2500", "ms", "10", "ok"},
		{"other", "1234567", "B"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
