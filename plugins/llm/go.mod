module github.com/the-edge-agent/tea/plugins/llm

go 1.26
