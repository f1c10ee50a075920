package main

import (
	_ "github.com/the-edge-agent/tea/sdk"
	_ "github.com/hashicorp/go-plugin"
	_ "github.com/nikolalohinski/gonja/v2"
	_ "github.com/yuin/gopher-lua"
	_ "github.com/alecthomas/kong"
	_ "github.com/jmespath-community/go-jmespath"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "go.yaml.in/yaml/v3"
	_ "net/http"
)

func main() {}
