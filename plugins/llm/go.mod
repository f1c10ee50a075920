module github.com/the-edge-agent/tea/plugins/llm

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/jsonschema-go v0.4.3
	github.com/the-edge-agent/tea/sdk v0.1.0
)
