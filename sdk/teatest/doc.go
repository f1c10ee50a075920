// Package teatest tests actions and plugins.
//
// Start with [Call]: it runs one action of a bundle inside the test, without a process,
// and returns its result in the value model. A [Host] records the action's requests to
// its host and answers for other actions.
//
//	func TestHello(t *testing.T) {
//		got, err := teatest.Call(t, greet.Bundle(), teatest.Request{
//			Action: "greet.hello",
//			Params: map[string]any{"name": "Ada"},
//		})
//		...
//	}
//
// [Conformance] runs the protocol's suite against a bundle, both linked in and as a
// separate process; [Binary] runs it against a built plugin in any language. Package
// conform has the suite for other programs.
package teatest
