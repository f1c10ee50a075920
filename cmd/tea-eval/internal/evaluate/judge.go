package evaluate

import (
	"context"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// judge is a grader that asks a model.
type judge struct {
	labels   []label
	minKappa float64 // -1 = none
}

// label is a result that a person has graded.
type label struct {
	pos    string
	c      Case
	output any
	pass   bool
}

// judgeSchema is the schema of a judge's answer.
func judgeSchema() map[string]any {
	return map[string]any{
		"type": "object", "required": []any{"pass", "reason"}, "additionalProperties": false,
		"properties": map[string]any{"reason": map[string]any{"type": "string"}, "pass": map[string]any{"type": "boolean"}},
	}
}

// decodeJudge decodes a judge. Templates in the prompt read the evidence.
func decodeJudge(f *File, g *grader, n *yaml.Node) error {
	g.judge = &judge{minKappa: -1}
	g.program = &program{}
	var prompt, system, model string
	err := f.Fields(n, map[string]any{
		"prompt": &prompt, "system": &system, "model": &model, "settings": &g.program.settings,
		"min_kappa": share{f, &g.judge.minKappa}.decode,
		"labels":    func(n *yaml.Node) error { return f.objects(n, g.judge.addLabel) },
	})
	with := map[string]any{"schema": judgeSchema(), "prompt": prompt}
	if system != "" {
		with["system"] = system
	}
	if model != "" {
		with["model"] = model
	}
	g.program.node = map[string]any{"uses": "llm.call", "with": with}
	switch {
	case err != nil:
		return err
	case prompt == "":
		return f.Failf(n, "the judge has no prompt, such as prompt: 'Is {{ state.output }} polite?'")
	case g.judge.minKappa >= 0 && len(g.judge.labels) == 0:
		return f.Failf(n, "min_kappa needs labels: results that a person has graded")
	}
	return nil
}

// addLabel adds a result that a person has graded.
func (j *judge) addLabel(pos string, _ int, fields map[string]any) error {
	keys := []string{"input", "expected", "output", "pass"}
	for key := range fields {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("%s: unknown key %q%s", pos, key, diag.Ending(key, keys))
		}
	}
	l := label{pos: pos, output: fields["output"], c: Case{Expected: fields["expected"]}}
	var ok bool
	if l.pass, ok = fields["pass"].(bool); !ok {
		return fmt.Errorf("%s: a label has pass: true or false", pos)
	}
	l.c.Input, _ = fields["input"].(map[string]any)
	j.labels = append(j.labels, l)
	return nil
}

// ask returns the verdict of a judge, from the cache if it has answered before. The usage
// of a new answer is added to that of the evidence.
func (ev *evaluation) ask(ctx context.Context, g *grader, e *evidence) (verdict, error) {
	roots := e.roots()
	usage := roots["usage"].(map[string]any)
	delete(usage, "seconds") // it differs each time, and so would the key
	key, err := ev.cache.key("judge", g.program.wf, ev.options.Secrets, ev.versions, roots)
	if err != nil {
		return verdict{}, err
	}
	var kept verdict
	if ev.cache.get(key, &kept) {
		return kept, nil
	}
	v, used, err := g.program.run(ctx, ev.options, roots)
	ev.spend(used)
	e.judged.Usage = e.judged.Usage.Add(flow.Usage{Tokens: used.Tokens, USD: used.USD})
	object, _ := v.(map[string]any)
	decision, err := answer(object["data"], err)
	if err == nil {
		ev.cache.put(key, decision)
	}
	return decision, err
}

// Agreement compares a judge with people.
type Agreement struct {
	Judge  string `json:"judge"`
	Labels int    `json:"labels"`
	// Judged is the number of labels that the judge has graded.
	Judged int     `json:"judged"`
	Raw    float64 `json:"raw"`
	// Kappa is nil if it is undefined.
	Kappa    *float64 `json:"kappa"`
	MinKappa *float64 `json:"min_kappa,omitempty"`
	Met      bool     `json:"met"`
	Error    string   `json:"error,omitempty"`
}

// agreement asks the judge about all labels.
func (ev *evaluation) agreement(ctx context.Context, g *grader) Agreement {
	a := Agreement{Judge: g.name, Labels: len(g.judge.labels)}
	var people, model []bool
	for _, l := range g.judge.labels {
		if ctx.Err() != nil || ev.overBudget() != "" {
			break
		}
		e := evidence{c: &l.c, run: &record{}, judged: &record{}, output: l.output, expected: l.c.Expected}
		v, err := ev.ask(ctx, g, &e)
		if err != nil {
			a.Error = fmt.Sprintf("%s: %v", l.pos, ev.text(err))
			continue
		}
		people, model = append(people, l.pass), append(model, v.Pass)
	}
	a.Judged = len(people)
	var k float64
	var defined bool
	if a.Raw, k, defined = kappa(people, model); defined {
		a.Kappa = &k
	}
	a.Met = true
	if least := g.judge.minKappa; least >= 0 {
		a.MinKappa, a.Met = &least, a.Judged == a.Labels && defined && k >= least
	}
	return a
}
