package python_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/python"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	needPython(t)
	teatest.Conformance(t, python.Bundle(),
		teatest.Request{Action: "python.run", Params: object{"code": "return {}"}},
		teatest.Request{Action: "python.run", Settings: on(nil), Params: object{"code": "print('a')\nreturn {'n': state.n + 1}", "state": object{"n": 1}}},
		teatest.Request{Action: "python.run", Settings: on(nil), Params: object{"code": "return 1 / 0"}},
		teatest.Request{Action: "python.call", Settings: on(nil), Params: object{"module": "math", "function": "gcd", "args": []any{12, 18}}},
	)
}
