package evaluate

import (
	"context"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

// The statuses of a report.
const (
	complete   = "complete"
	overBudget = "budget"
	stopped    = "interrupted"
)

// Report is the result of an evaluation.
type Report struct {
	File    string    `json:"file"`
	Started time.Time `json:"started_at"`
	Seconds float64   `json:"seconds"`
	// Status is complete, budget or interrupted.
	Status string `json:"status"`
	// Limit is the limit of the budget that was reached.
	Limit string `json:"limit,omitempty"`
	// Met reports whether all trials ran and all thresholds are met.
	Met        bool        `json:"met"`
	Cases      int         `json:"cases"`
	Repeats    int         `json:"repeats"`
	Spent      flow.Usage  `json:"spent"`
	Variants   []Summary   `json:"variants"`
	Comparison *Comparison `json:"comparison,omitempty"`
	Agreements []Agreement `json:"judges,omitempty"`
	Trials     []Trial     `json:"trials"`
}

// Summary is the result of a variant.
type Summary struct {
	Name     string `json:"name"`
	Workflow string `json:"workflow"`
	Digest   string `json:"digest"`
	Rate
	// Counts are the trials by status.
	Counts  map[string]int `json:"trials"`
	Cached  int            `json:"cached"`
	Usage   flow.Usage     `json:"usage"`
	Graders []Rate         `json:"graders"`
	Tags    []Rate         `json:"tags,omitempty"`
}

// Rate is a share of good trials with its 95% interval.
type Rate struct {
	Name   string `json:"name,omitempty"`
	Passed int    `json:"passed"`
	// Trials is the number of trials that ran, with those that failed to run to the end.
	Trials int     `json:"graded"`
	Rate   float64 `json:"rate"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Threshold is nil if there is none. Met is false if no trial ran.
	Threshold *float64 `json:"threshold,omitempty"`
	Met       bool     `json:"met"`
}

// ran reports whether a trial counts: it was not interrupted and not left out.
func (t *Trial) ran() bool { return t.Status != notRun && t.Status != interrupted }

// rate returns the share of good trials. Repeats of a case are not independent, so the
// interval is that of as many trials as there are cases.
func rate(name string, threshold float64, trials []Trial, good func(t *Trial) bool) Rate {
	r := Rate{Name: name, Met: true}
	cases := map[int]bool{}
	for i := range trials {
		if t := &trials[i]; t.ran() {
			r.Trials++
			cases[t.index] = true
			if good(t) {
				r.Passed++
			}
		}
	}
	if r.Trials > 0 {
		r.Rate = float64(r.Passed) / float64(r.Trials)
	}
	n := float64(len(cases))
	r.Low, r.High = wilson(r.Rate*n, n)
	if threshold >= 0 {
		r.Threshold, r.Met = &threshold, r.Trials > 0 && r.Rate >= threshold
	}
	return r
}

// report makes the report of the trials.
func (ev *evaluation) report(ctx context.Context, trials []Trial) *Report {
	f := ev.file
	r := &Report{
		File: string(f.File), Started: ev.started.UTC(), Status: complete, Met: true, Cases: len(f.Cases), Repeats: f.Repeats, Trials: trials,
	}
	for _, g := range f.graders {
		if g.judge != nil && len(g.judge.labels) > 0 {
			a := ev.agreement(ctx, g)
			r.Met = r.Met && a.Met
			r.Agreements = append(r.Agreements, a)
		}
	}
	for v := range f.Variants {
		own := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return t.variant != v })
		s := ev.summary(v, own)
		r.Met = r.Met && s.Met && s.Counts[notRun]+s.Counts[interrupted] == 0
		for _, g := range s.Graders {
			r.Met = r.Met && g.Met
		}
		r.Variants = append(r.Variants, s)
	}
	if len(f.Variants) == 2 {
		r.Comparison = ev.compare(trials)
	}
	missing := slices.ContainsFunc(trials, func(t Trial) bool { return !t.ran() }) ||
		slices.ContainsFunc(r.Agreements, func(a Agreement) bool { return a.Judged < a.Labels && a.Error == "" })
	if limit := ev.overBudget(); missing && ctx.Err() != nil {
		r.Status, r.Met = stopped, false
	} else if missing && limit != "" {
		r.Status, r.Limit, r.Met = overBudget, limit, false
	}
	r.Spent, r.Seconds = ev.spent, time.Since(ev.started).Seconds()
	return r
}

func (ev *evaluation) summary(v int, trials []Trial) Summary {
	f := ev.file
	isGood := func(t *Trial) bool { return t.Status == passed }
	s := Summary{
		Name: f.Variants[v].Name, Workflow: f.Variants[v].Workflow, Digest: ev.workflows[v].Digest(),
		Rate: rate("", f.Threshold, trials, isGood), Counts: map[string]int{},
	}
	for i := range trials {
		s.Counts[trials[i].Status]++
		s.Usage = s.Usage.Add(trials[i].Usage)
		if trials[i].Cached {
			s.Cached++
		}
	}
	for _, g := range f.graders {
		s.Graders = append(s.Graders, rate(g.name, g.threshold, trials, func(t *Trial) bool { return t.Grades[g.name].Pass }))
	}
	var tags []string
	for _, c := range f.Cases {
		tags = append(tags, c.Tags...)
	}
	slices.Sort(tags)
	for _, tag := range slices.Compact(tags) {
		tagged := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return !slices.Contains(f.Cases[t.index].Tags, tag) })
		s.Tags = append(s.Tags, rate(tag, -1, tagged, isGood))
	}
	return s
}
