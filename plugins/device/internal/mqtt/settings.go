package mqtt

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	settingsKey = "mqtt"
	serversPath = "settings.mqtt.servers"
)

// Settings are the settings under settings.mqtt.
type Settings struct {
	Servers map[string]Server `json:"servers,omitempty" doc:"the MQTT brokers by name"`
}

// Server is a broker.
type Server struct {
	URL              string  `json:"url" pattern:"^mqtts?://([^\\]\\[/?#@: ]+|\\[[^\\]\\[/?#@ ]+\\])(:[0-9]{1,5})?/?$" doc:"mqtt://HOST:PORT, or mqtts:// for TLS, with username and password in their own keys; port 1883 or 8883 if there is none"`
	Protocol         string  `json:"protocol,omitempty" enum:"5,3.1.1" default:"5" doc:"version of the protocol"`
	Username         string  `json:"username,omitempty" doc:"name of the user"`
	Password         string  `json:"password,omitempty" secret:"true" doc:"password"`
	ClientID         string  `json:"client_id,omitempty" doc:"identifier at the broker, which ends an older connection with the same one; default: a random one"`
	CAFile           string  `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM format to trust in addition to the system's"`
	CertFile         string  `json:"cert_file,omitempty" format:"path" doc:"file with the certificate of this client in PEM format"`
	KeyFile          string  `json:"key_file,omitempty" format:"path" doc:"file with the key of cert_file"`
	KeepAliveSeconds int     `json:"keep_alive_seconds,omitempty" default:"30" minimum:"1" maximum:"65535" doc:"interval of pings"`
	TimeoutSeconds   float64 `json:"timeout_seconds,omitempty" default:"10" minimum:"0.05" maximum:"600" doc:"limit for connecting, and for an acknowledgement"`
	Will             *Will   `json:"will,omitempty" doc:"message that the broker publishes when this connection breaks"`
	Publish          []Rule  `json:"publish,omitempty" doc:"the topics that can be published to, and their limits; the first rule that matches counts"`
}

// JSONSchema returns the schema. The certificate and its key require each other.
func (Server) JSONSchema() *schema.Schema {
	type plain Server
	return schema.With[plain](`{"dependentRequired": {"cert_file": ["key_file"], "key_file": ["cert_file"]}}`)
}

// Will is the last will.
type Will struct {
	Topic   string `json:"topic" minLength:"1" maxLength:"16383" pattern:"^[^+#\\x00]*$" doc:"topic, without wildcards"`
	Payload string `json:"payload,omitempty"`
	QoS     int    `json:"qos,omitempty" minimum:"0" maximum:"2"`
	Retain  bool   `json:"retain,omitempty"`
}

// Rule allows publishing to topics.
type Rule struct {
	Topics []Filter `json:"topics" minItems:"1" doc:"topics, with the wildcards + and #"`
	guard.Rule
}

// Filter is a topic with wildcards.
type Filter string

// JSONSchema returns the schema of a filter, whose length in bytes the protocol limits to 65535.
func (Filter) JSONSchema() *schema.Schema {
	return schema.With[string](`{"description": "a topic: + is one level, # the last ones", "minLength": 1, "maxLength": 16383,
		"pattern": "^(#|(\\+|[^+#/\\x00]*)(/(\\+|[^+#/\\x00]*))*(/#)?)$"}`)
}

// Check returns a mistake in the settings that the schema cannot express.
func (s Settings) Check() error {
	for name, server := range s.Servers {
		if _, err := server.address(); err != nil {
			return tea.Errorf(tea.ValidationError, "%s.url: %w", diag.Key(serversPath, name), err)
		}
	}
	return nil
}

func (s Server) address() (*url.URL, error) {
	return part.Address(s.URL, "mqtt://192.0.2.7 or mqtts://broker.example", map[string]string{"mqtt": "1883", "mqtts": "8883"})
}

// config returns the settings of TLS.
func (s Server) config(name string) (*tls.Config, error) {
	config := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if s.CAFile != "" {
		var err error
		if config.RootCAs, err = httpapi.Certificates(s.CAFile); err != nil {
			return nil, err
		}
	}
	if s.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (s Server) timeout() time.Duration { return part.Seconds(s.TimeoutSeconds) }

// rule returns the rule for a topic and its path; nil if there is none.
func (s Server) rule(path, topic string) (*guard.Rule, string) {
	for i, rule := range s.Publish {
		if slices.ContainsFunc(rule.Topics, func(filter Filter) bool { return matches(string(filter), topic) }) {
			return &rule.Rule, diag.Index(path+".publish", i)
		}
	}
	return nil, path + ".publish"
}

// withoutShare returns the filter of a shared subscription, $share/GROUP/FILTER.
func withoutShare(topic string) string {
	if rest, shared := strings.CutPrefix(topic, "$share/"); shared {
		_, topic, _ = strings.Cut(rest, "/")
	}
	return topic
}

// matches reports whether a filter matches a topic. Wildcards do not match the topics
// of the broker itself, which begin with $.
func matches(filter, topic string) bool {
	want, have := strings.Split(filter, "/"), strings.Split(topic, "/")
	if strings.HasPrefix(topic, "$") && (want[0] == "+" || want[0] == "#") {
		return false
	}
	for i, level := range want {
		switch {
		case level == "#":
			return true
		case i >= len(have) || level != "+" && level != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
