package script_test

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/host/internal/script"
)

func Example() {
	rt := script.New(script.Options{})
	chunk, err := rt.Compile(script.Source{Name: "flow.yaml", Line: 12, Text: `
local hot = {}
for _, reading in ipairs(state.readings) do
  if reading.celsius > variables.limit then
    hot[#hot + 1] = reading.device
  end
end
return {hot = hot, count = #hot}`})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := chunk.Run(context.Background(), script.Env{
		State: map[string]any{"readings": []any{
			map[string]any{"device": "pump", "celsius": 81.5},
			map[string]any{"device": "fan", "celsius": int64(35)},
		}},
		Globals: script.Values{"variables": map[string]any{"limit": int64(60)}},
	})
	fmt.Println(result, err)
	// Output: map[count:1 hot:[pump]] <nil>
}
