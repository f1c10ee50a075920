// Package tea is the SDK for authors of action plugins.
//
// An [Action] is a typed Go function with a name; a [Bundle] is a set of
// actions. Start with [NewAction]:
//
//	type params struct {
//		Name string `json:"name" doc:"who is greeted"`
//	}
//	type result struct {
//		Text string `json:"text"`
//	}
//
//	func hello(ctx context.Context, req *tea.Request, p params) (result, error) {
//		return result{Text: "Hello " + p.Name}, nil
//	}
//
//	func main() {
//		serve.Main(tea.Bundle{Name: "greet", Version: "0.1.0", Actions: []tea.Action{
//			tea.NewAction("greet.hello", "Greets somebody.", hello),
//		}})
//	}
//
// The same bundle runs in a separate process (package serve) or linked into
// the host, with the same results. The package needs only the standard library.
package tea
