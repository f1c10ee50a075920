package spec

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// defaultBroker is the broker of a trigger that names none.
const defaultBroker = "mqtt://localhost:1883"

// check checks a trigger by itself. The server checks its secrets, time zone and directories, and the triggers of other
// workflows.
func (t *Trigger) check() (hint string, err error) {
	switch t.Kind {
	case TriggerWebhook:
		return t.Webhook.check()
	case TriggerWatch:
		if strings.Contains(t.Watch.Pattern, "/") {
			return "watch the directory with these files", fmt.Errorf("pattern: %q has a slash, which is not allowed in the name of a file", t.Watch.Pattern)
		}
		if _, err := path.Match(t.Watch.Pattern, ""); err != nil {
			return "use *, ? and [...]", fmt.Errorf("pattern: %q is not a pattern", t.Watch.Pattern)
		}
	case TriggerMQTT:
		return t.MQTT.check()
	}
	return "", nil
}

func (t *Webhook) check() (hint string, err error) {
	p := t.HookPath()
	switch signed := t.Signature != "none"; {
	case p == "" || strings.ContainsAny(p, "?#%{} ") || path.Clean(p) != p || strings.HasPrefix(p, ".."):
		return "use letters, digits, - and /", fmt.Errorf("webhook: %q is not a path", t.Path)
	case t.Secret == "" && signed:
		return "pass its secret: secret: NAME, or signature: none if another program checks requests", errors.New("webhook: requests are not signed, so anyone can start runs")
	case t.Secret != "" && !signed:
		return "remove one of the two", errors.New("webhook: signature: none has no secret")
	}
	return "", nil
}

// HookPath returns the path below /hooks/.
func (t *Webhook) HookPath() string { return strings.Trim(t.Path, "/") }

func (t *MQTT) check() (hint string, err error) {
	broker, err := url.Parse(t.Broker)
	if err != nil || broker.Host == "" {
		return "use a URL such as " + defaultBroker, fmt.Errorf("broker: %q is not a URL", t.Broker)
	}
	switch broker.Scheme {
	case "mqtt", "mqtts", "ws", "wss":
	default:
		return "use mqtt, mqtts, ws or wss", fmt.Errorf("broker: the scheme %q is not one of MQTT", broker.Scheme)
	}
	topic := t.Topic
	if at := strings.IndexByte(topic, '#'); topic == "" || at >= 0 && at != len(topic)-1 {
		return "# is the last level of a topic", fmt.Errorf("mqtt: %q is not a topic", topic)
	}
	if strings.ContainsAny(t.ResultTopic, "+#") {
		return "name one topic", fmt.Errorf("result_topic: %q has wildcards", t.ResultTopic)
	}
	return "", nil
}
