package mcp_test

func ignoreTerm() {}
