module github.com/the-edge-agent/tea

go 1.26
