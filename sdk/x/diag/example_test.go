package diag_test

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// A list collects what is wrong and is an error if one of its diagnostics is.
func ExampleList() {
	var found diag.List
	pos := diag.Pos{File: "flow.yaml", Line: 7, Column: 5, Path: "nodes[1].name"}
	found.Errorf("TEA1102", pos, "rename one of them", "duplicate node name %q", "load")
	found.Warnf("TEA1304", diag.Pos{File: "flow.yaml", Line: 2, Column: 1}, "", "nothing reads the key %q", "draft")
	found.Sort()
	fmt.Println(found.Err())
	// Output:
	// flow.yaml:2:1: warning TEA1304: nothing reads the key "draft"
	// flow.yaml:7:5: error TEA1102: duplicate node name "load" (nodes[1].name)
	//   hint: rename one of them
}

func ExampleSuggest() {
	fmt.Println(diag.Suggest("max_retrys", []string{"max_retries", "max_steps", "timeout_seconds"}))
	fmt.Printf("%q\n", diag.Suggest("colour", []string{"max_retries", "max_steps"}))
	// Output:
	// did you mean "max_retries"?
	// ""
}

func ExampleKey() {
	fmt.Println(diag.Key(diag.Index("nodes", 3), "retry"), diag.Key("headers", "X Id"))
	// Output: nodes[3].retry headers["X Id"]
}

func ExampleEnding() {
	known := []string{"max_retries", "max_steps"}
	fmt.Printf("unknown key %q%s\n", "max_step", diag.Ending("max_step", known))
	fmt.Printf("unknown key %q%s\n", "colour", diag.Ending("colour", known))
	// Output:
	// unknown key "max_step"; did you mean "max_steps"?
	// unknown key "colour"
}
