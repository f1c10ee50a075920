package httpapi

import (
	"net/url"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// shortest is the length from which a value is masked: "none" must not be masked
// inside other words.
const shortest = 8

// SecretsOf returns what of a header's value must not be shown: the value and,
// after a scheme such as Bearer, the credential. Values too short for a
// credential are left out, since they would mask ordinary words.
func SecretsOf(header string) []string {
	var secrets []string
	for _, text := range append(strings.Fields(header), header) {
		if len(text) >= shortest {
			secrets = append(secrets, text)
		}
	}
	return secrets
}

// SecretsOfAddress returns the password and the query's values of an address,
// decoded and as they are written there.
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

// redact replaces secrets everywhere in an error, except values too short for one.
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
