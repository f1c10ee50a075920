package mcpserver

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// checkURI refuses resource URIs with characters that the SDK does not escape in
// its error; such an error would end the connection.
func checkURI(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params, ok := req.GetParams().(*mcp.ReadResourceParams); ok && params != nil && !json.Valid([]byte(strconv.Quote(params.URI))) {
			return nil, invalid("the URI of the resource has characters that are not allowed")
		}
		return next(ctx, method, req)
	}
}

// formKey is the context key for the client's answer to a form.
type formKey struct{}

// keepAnswer stores the client's answer to a form, which the SDK drops if it does
// not match the schema.
func keepAnswer(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if given, ok := ctx.Value(formKey{}).(**mcp.ElicitResult); ok && err == nil {
			if answer, ok := result.(*mcp.ElicitResult); ok {
				*given = answer
			}
		}
		return result, err
	}
}
