package server

import (
	_ "embed"
	"net/http"
)

// openAPI is the description of the API in the format OpenAPI 3.1. The tests compare
// it with the routes and with what the server answers.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI answers with the description of the API.
func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openAPI) // the client is gone
}
