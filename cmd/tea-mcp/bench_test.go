package main

import "testing"

// BenchmarkCall calls a workflow with one Lua node over stdin and stdout.
func BenchmarkCall(b *testing.B) {
	for _, durability := range []string{"sync", "exit"} {
		b.Run(durability, func(b *testing.B) {
			c := newProject(b, map[string]string{"greet.yaml": greet}).start(nil, "", "--durability", durability)
			args := map[string]any{"name": "Ada"}
			for b.Loop() {
				if out := c.call("greet", args); out.Status != "done" {
					b.Fatalf("result: %+v", out)
				}
			}
		})
	}
}
