package evaluate

import (
	"fmt"
	"slices"
)

// Comparison is the difference between two variants, the second minus the first, over the
// cases that both have run.
type Comparison struct {
	First  string `json:"first"`
	Second string `json:"second"`
	Cases  int    `json:"cases"`
	// Both, OnlyFirst, OnlySecond and Neither count the cases that passed. They are set
	// without repeats, as P is.
	Both       int `json:"both"`
	OnlyFirst  int `json:"only_first"`
	OnlySecond int `json:"only_second"`
	Neither    int `json:"neither"`
	// P is the p-value of the exact McNemar test.
	P *float64 `json:"p,omitempty"`
	// Text says whether a difference of the rates is shown.
	Text string `json:"text"`
	// Measures begin with the rate.
	Measures []Measure `json:"measures"`
}

// Measure is the mean of a number with its difference.
type Measure struct {
	Name   string  `json:"name"`
	First  float64 `json:"first"`
	Second float64 `json:"second"`
	// Difference has the 95% interval from Low to High.
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	// Shown reports whether the evaluation shows a difference.
	Shown bool `json:"shown"`
}

// level is the level of significance.
const level = 0.05

// measures returns the numbers that are compared.
func measures() []struct {
	name string
	of   func(t *Trial) float64
} {
	return []struct {
		name string
		of   func(t *Trial) float64
	}{
		{"rate", func(t *Trial) float64 {
			if t.Status == passed {
				return 1
			}
			return 0
		}},
		{"steps", func(t *Trial) float64 { return float64(t.Usage.Steps) }},
		{"tokens", func(t *Trial) float64 { return float64(t.Usage.Tokens) }},
		{"usd", func(t *Trial) float64 { return t.Usage.USD }},
		{"seconds", func(t *Trial) float64 { return t.Seconds }},
	}
}

// compare compares the two variants of the file.
func (ev *evaluation) compare(trials []Trial) *Comparison {
	f := ev.file
	c := &Comparison{First: f.Variants[0].Name, Second: f.Variants[1].Name}
	paired := make([][2][]*Trial, len(f.Cases)) // the trials of each case that both variants have run
	for j := 0; j < len(trials); j += 2 {       // the variants of a repeat are next to each other
		if trials[j].ran() && trials[j+1].ran() {
			pair := &paired[trials[j].index]
			pair[0], pair[1] = append(pair[0], &trials[j]), append(pair[1], &trials[j+1])
		}
	}
	paired = slices.DeleteFunc(paired, func(pair [2][]*Trial) bool { return len(pair[0]) == 0 })
	c.Cases = len(paired)
	for _, m := range measures() {
		c.Measures = append(c.Measures, compareBy(m.name, paired, m.of, f.Seed))
	}
	difference := &c.Measures[0]
	if f.Repeats == 1 {
		c.test(paired)
		difference.Shown = *c.P < level
	}
	c.Text = c.sentence(difference)
	return c
}

// compareBy compares the means of a number over the cases.
func compareBy(name string, paired [][2][]*Trial, of func(t *Trial) float64, seed uint64) Measure {
	means := [2][]float64{}
	var differences []float64
	for _, pair := range paired {
		for side, list := range pair {
			values := make([]float64, len(list))
			for i, t := range list {
				values[i] = of(t)
			}
			means[side] = append(means[side], mean(values))
		}
		last := len(differences)
		differences = append(differences, means[1][last]-means[0][last])
	}
	m := Measure{Name: name, First: mean(means[0]), Second: mean(means[1]), Difference: mean(differences)}
	m.Low, m.High = bootstrap(differences, seed)
	// With few cases the bootstrap can return an interval that is too short.
	m.Shown = len(paired) >= fewestCases && (m.Low > 0 || m.High < 0)
	return m
}

// fewestCases is the number of cases from which an interval shows a difference.
const fewestCases = 5

// test counts the pairs and computes the p-value of the difference.
func (c *Comparison) test(paired [][2][]*Trial) {
	for _, pair := range paired {
		switch first, second := pair[0][0].Status == passed, pair[1][0].Status == passed; {
		case first && second:
			c.Both++
		case first:
			c.OnlyFirst++
		case second:
			c.OnlySecond++
		default:
			c.Neither++
		}
	}
	p := mcnemar(c.OnlyFirst, c.OnlySecond)
	c.P = &p
}

func (c *Comparison) sentence(m *Measure) string {
	how := fmt.Sprintf("difference %+.1f points, 95%% interval %+.1f to %+.1f", m.Difference*100, m.Low*100, m.High*100)
	if c.P != nil {
		how += fmt.Sprintf("; exact McNemar test, p = %.2g", *c.P)
	}
	switch {
	case c.Cases == 0:
		return "no case was run by both variants"
	case !m.Shown:
		return fmt.Sprintf("no difference shown between %s and %s (%s; %d cases)", c.First, c.Second, how, c.Cases)
	}
	better, worse := c.Second, c.First
	if m.Difference < 0 {
		better, worse = c.First, c.Second
	}
	return fmt.Sprintf("%s passes more cases than %s (%s; %d cases)", better, worse, how, c.Cases)
}
