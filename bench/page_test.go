package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrowthTableShowsTheGainOfCores(t *testing.T) {
	t.Parallel()
	points := []Point{
		{Row: "map", Unit: "item", Size: 10, Cores: 1, Wall: 8, CPU: 8},
		{Row: "map", Unit: "item", Size: 10, Cores: 2, Wall: 4, CPU: 8.4},
		{Row: "map", Unit: "item", Size: 1000, Cores: 1, Wall: 6, CPU: 6},
		{Row: "map", Unit: "item", Size: 1000, Cores: 2, Wall: 3.6, CPU: 7},
	}
	var got []string
	growthTable(points, func(cells ...string) { got = append(got, strings.Join(cells, "|")) })
	want := []string{
		"row|size|cores|wall, us|CPU, us|vs. one core", "map, per item|10|1|8|8|1x", "map, per item|10|2|4|8.40|0.5000x",
		"map, per item|1000|1|6|6|1x", "map, per item|1000|2|3.60|7|0.6000x",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	drawn := charts(points)
	if d := cmp.Diff([]line{{name: "map", x: []float64{1, 2}, y: []float64{1, 0.6}}}, drawn[1].lines, cmp.AllowUnexported(line{})); d != "" {
		t.Errorf("the gain of cores, -want +got:\n%s", d)
	}
	for _, c := range drawn {
		d := xml.NewDecoder(strings.NewReader(c.svg()))
		var err error
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) || strings.Contains(c.svg(), "NaN") {
			t.Errorf("%s: %v\n%s", c.file, err, c.svg())
		}
	}
}

func TestABusyMachineIsMentioned(t *testing.T) {
	t.Parallel()
	for load, want := range map[[2]float64]bool{{0.1, 1.9}: true, {3, 2}: false, {0.1, 9}: false} {
		r := &report{CPUs: 2, Load: load}
		if got := strings.Contains(r.quiet(), "was quiet"); got != want {
			t.Errorf("%v: %s", load, r.quiet())
		}
	}
}
