module example.com/tea-embed

go 1.26.0

require (
	github.com/the-edge-agent/tea v0.1.0
	github.com/the-edge-agent/tea/sdk v0.1.0
)

require (
	github.com/jmespath-community/go-jmespath v1.1.1 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
