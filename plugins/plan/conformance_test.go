package plan_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/plan"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	teatest.Conformance(t, plan.Bundle(),
		teatest.Request{Action: "plan.decompose", Params: object{"goal": "build a house"}}, // no llm.call
		teatest.Request{Action: "plan.replan", Params: object{"plan": list("a"), "max_replans": 0}},
		teatest.Request{Action: "plan.status", Params: object{"plan": list("a", "b<a"), "include_tree": true, "include_details": true}},
		teatest.Request{Action: "plan.execute", Params: object{"plan": list("a<a"), "subtask_executor": executor}},
	)
}
