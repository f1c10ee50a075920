package notify_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/notify"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// tea validate uses the schema in the manifest and does not start the plugin.
func TestMistakesInSettingsAreFoundByTheSchema(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.Compile(notify.Bundle().Settings["notify"])
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	target := func(more object) object {
		t := object{"ntfy": object{"url": "https://ntfy.example/pumps"}}
		for key, v := range more {
			t[key] = v
		}
		return object{"targets": object{"ops": t}}
	}
	quiet := func(from, to, zone string) object {
		return target(object{"quiet": object{"from": from, "to": to, "timezone": zone}})
	}
	email := func(server string) object {
		return object{"targets": object{"ops": object{"email": object{"server": server, "from": "a@b.example", "to": []any{"c@d.example"}}}}}
	}
	ask := func(to string) object {
		s := target(nil)
		s["questions"] = object{"to": []any{"ops"}, "escalate": []any{object{"after_seconds": 60, "to": []any{to}}}}
		return s
	}
	for _, c := range []struct {
		settings object
		want     string // "" if there is no mistake
	}{
		{quiet("22:00", "6:30", "Europe/Berlin"), ""},
		{quiet("25:00", "06:30", "UTC"), `targets.ops.quiet.from: must match the pattern ^([01]?[0-9]|2[0-3]):[0-5][0-9]$ (begin, such as 22:00), got "25:00"`},
		{quiet("22:00", "06:60", "UTC"), `targets.ops.quiet.to: must match the pattern ^([01]?[0-9]|2[0-3]):[0-5][0-9]$ (end, such as 06:30), got "06:60"`},
		{quiet("22:00", "06:30", "Europe/Berlinn"), `targets.ops.quiet.timezone: must be a time zone such as Europe/Berlin, got "Europe/Berlinn"`},
		{email("mail.example:587"), ""},
		{email("[2001:db8::1]:25"), ""},
		{email("mail.example"), `targets.ops.email.server: must match the pattern ^([^\]\[/@: ]+|\[[^\]\[/@ ]+\]):[0-9]{1,5}$ (address of the mail server: HOST:PORT), got "mail.example"`},
		{object{"targets": object{"ops": object{}}}, "targets.ops: needs ntfy, email, slack, teams, telegram, matrix or webhook"},
		{target(object{"slack": object{"url": "https://a.example"}}), "targets.ops: only one of ntfy, email, slack, teams, telegram, matrix, webhook is allowed: remove ntfy or slack"},
		{target(object{"quite": true}), `targets.ops.quite: unknown member "quite"; did you mean "quiet"?`},
		{object{"targets": object{"a b": object{"ntfy": object{"url": "https://a.example/b"}}}}, `targets["a b"]: its name must match the pattern ^[A-Za-z0-9_-]{1,64}$, got "a b"`},
		{ask("ops"), ""},
		{object{"questions": object{"escalate": []any{object{}}}}, `questions: "to" is required; questions.escalate[0]: "after_seconds" is required; questions.escalate[0]: "to" is required`},
		{ask("opz"), `questions.escalate[0].to[0]: "opz" is not in targets; did you mean "ops"?`},
	} {
		settings, err := value.From(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonschema.Join(compiled.Validate(settings)); got != c.want {
			t.Errorf("%v:\n%s\nwant %s", c.settings, got, c.want)
		}
	}
}
