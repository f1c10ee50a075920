package httpapi

import (
	"net/url"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// shortest is the minimum length of a masked value: "none" must not be masked inside other
// words.
const shortest = 8

// SecretsOf returns the secret parts of a header's value: the value and, after a scheme such
// as Bearer, the credential. It omits values that are too short for a credential, which would
// mask ordinary words.
func SecretsOf(header string) []string {
	var secrets []string
	for _, text := range append(strings.Fields(header), header) {
		if len(text) >= shortest {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// SecretsOfAddress returns the password and the values in the query of an address, both
// decoded and as written.
func SecretsOfAddress(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var secrets []string
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, SecretsOf(password)...)
		secrets = append(secrets, SecretsOf(url.QueryEscape(password))...)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			secrets = append(secrets, SecretsOf(value)...)
			secrets = append(secrets, SecretsOf(url.QueryEscape(value))...)
		}
	}
	return secrets
}

// redact replaces secrets everywhere in an error, except values that are too short.
func redact(e *tea.Error, secrets []string) {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= shortest {
			pairs = append(pairs, secret, "***")
		}
	}
	if len(pairs) == 0 {
		return
	}
	r := strings.NewReplacer(pairs...)
	e.Message = r.Replace(e.Message)
	details := make(map[string]any, len(e.Details))
	for name, v := range e.Details {
		if text, ok := v.(string); ok {
			v = r.Replace(text)
		}
		details[name] = v
	}
	e.Details = details
}
