package main

import (
	"testing"

	"github.com/the-edge-agent/tea/host/flow"
)

func TestControl(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		start  float64
		answer bool
		asked  bool
		want   float64
	}{
		{"drains what was confirmed", 85, true, true, 35},
		{"leaves the valve closed", 85, false, true, 85},
		{"asks nobody for a little", 60, false, false, 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tk := &tank{percent: test.start}
			asked := false
			res, err := control(t.Context(), tk, 40, func(string) bool { asked = true; return test.answer })
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != flow.Done {
				t.Fatalf("status = %s, %v", res.Status, res.Err)
			}
			if tk.percent != test.want || asked != test.asked {
				t.Errorf("level %v, asked %v; want %v, %v", tk.percent, asked, test.want, test.asked)
			}
		})
	}
}
