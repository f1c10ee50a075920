package flow_test

import (
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
)

func ExampleEvent_Field() {
	e := flow.Event{
		Seq: 7, Time: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC), RunID: "run-1", Type: flow.EventNodeEnd, Node: "fetch", Path: "each[3]/fetch",
		Fields: []flow.Field{{Key: "duration_ms", Value: 1.5}, {Key: "attempts", Value: int64(2)}},
	}
	fmt.Println(e.Field("attempts"), e.Field("skipped"))
	line, err := e.MarshalJSON()
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	// Output:
	// 2 <nil>
	// {"seq":7,"ts":"2026-11-22T09:00:00Z","run_id":"run-1","event":"node_end","node":"fetch","path":"each[3]/fetch","attempts":2,"duration_ms":1.5}
}

func ExampleInterrupt_Check() {
	i := flow.Interrupt{ID: "approve:ask", Kind: flow.InterruptAsk, Choices: []any{"yes", "no"}}
	fmt.Println(i.Check("yes"))
	fmt.Println(i.Check("perhaps"))
	// Output:
	// <nil>
	// validation_error: the answer to approve:ask must be one of ["yes","no"]
}
