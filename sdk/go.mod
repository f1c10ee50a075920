module github.com/the-edge-agent/tea/sdk

go 1.26
