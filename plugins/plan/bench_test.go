package plan_test

import (
	"fmt"
	"testing"

	"github.com/the-edge-agent/tea/plugins/plan"
	tea "github.com/the-edge-agent/tea/sdk"
)

// BenchmarkExecute reports what a subtask costs in the plugin: JSON in and out,
// without a host and a connection.
func BenchmarkExecute(b *testing.B) {
	const subtasks = 1000
	texts := make([]string, subtasks)
	for i := range texts {
		texts[i] = fmt.Sprint("s", i)
		if i >= 10 {
			texts[i] += fmt.Sprint("<s", i-10)
		}
	}
	params, err := tea.ValuePayload(object{"plan": list(texts...), "subtask_executor": executor}).JSON()
	if err != nil {
		b.Fatal(err)
	}
	bundle := plan.Bundle()
	instance, err := bundle.NewInstance(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		host := (&worker{}).host()
		resp, err := instance.Invoke(b.Context(), &tea.Request{Action: "plan.execute", Params: tea.RawPayload(params), Host: host})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := resp.Result.JSON(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/subtasks, "ns/subtask")
}
