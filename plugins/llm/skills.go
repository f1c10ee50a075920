package llm

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Limits for skills.
const (
	maxSkillFile        = 64 << 10 // bytes of one file
	maxSkills           = 100      // entries of a directory of skills
	maxSkillName        = 64
	maxSkillDescription = 1024
)

// skillFile is the file that makes a directory a skill.
const skillFile = "SKILL.md"

// skill is a directory with instructions that an agent reads when it needs them.
type skill struct{ name, description, dir string }

// readSkills finds the skills of an agent.
func readSkills(ctx context.Context, dirs []SkillDir) ([]skill, error) {
	var skills []skill
	for _, given := range dirs {
		dir := string(given)
		if !filepath.IsAbs(dir) {
			return nil, tea.Errorf(tea.ValidationError, "the directory of skills %q is not absolute; move the agent to settings.llm.agents, where it is relative to the file", dir)
		}
		found, err := skillsIn(ctx, dir)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			for _, other := range skills {
				if other.name == s.name {
					return nil, tea.Errorf(tea.ValidationError, "the skills in %s and %s have the same name, %s; rename one of them", other.dir, s.dir, s.name)
				}
			}
			skills = append(skills, s)
		}
	}
	return skills, nil
}

// skillsIn returns the skill that a directory is, or those in its directories.
func skillsIn(ctx context.Context, dir string) ([]skill, error) {
	root, err := confine.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	if _, err := root.Stat(skillFile); err == nil {
		s, err := readHead(root, ".")
		return []skill{s}, err
	}
	entries, err := root.List(ctx, ".", false, maxSkills)
	if err != nil {
		return nil, err
	}
	var skills []skill
	for _, e := range entries {
		if !e.Info.IsDir() {
			continue
		}
		if _, err := root.Stat(e.Path + "/" + skillFile); err != nil {
			continue
		}
		s, err := readHead(root, e.Path)
		if err != nil {
			return nil, err
		}
		skills = append(skills, s)
	}
	if len(skills) == 0 {
		return nil, tea.Errorf(tea.NotFound, "there is no %s in %s or in a directory of it", skillFile, dir)
	}
	return skills, nil
}

// readHead reads the name and the description of a skill.
func readHead(root *confine.Root, dir string) (skill, error) {
	file := filepath.Join(root.Dir(), dir, skillFile)
	data, err := root.ReadFile(dir+"/"+skillFile, maxSkillFile)
	if err != nil {
		return skill{}, err
	}
	head, err := frontMatter(string(data))
	if err != nil {
		return skill{}, tea.Errorf(tea.ValidationError, "%s: %w", file, err)
	}
	s := skill{name: head["name"], description: head["description"], dir: filepath.Dir(file)}
	switch {
	case !isSkillName(s.name):
		return skill{}, tea.Errorf(tea.ValidationError, "%s: the name of the skill is %q; use up to %d lower-case letters, digits and hyphens", file, s.name, maxSkillName)
	case s.description == "" || utf8.RuneCountInString(s.description) > maxSkillDescription:
		return skill{}, tea.Errorf(tea.ValidationError, "%s: the description of the skill has %d characters; it needs 1 to %d", file, utf8.RuneCountInString(s.description), maxSkillDescription)
	}
	return s, nil
}

// isSkillName reports whether a name is valid. As in the reference library of the format,
// it can have the letters of any language.
func isSkillName(name string) bool {
	wrong := func(r rune) bool {
		return r != '-' && (!unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsUpper(r))
	}
	return name != "" && utf8.RuneCountInString(name) <= maxSkillName && !strings.ContainsFunc(name, wrong)
}

// frontMatter returns the texts between the first two lines "---" of a file, which are
// YAML: plain and quoted texts, and texts of several lines. Lists and objects are left out.
func frontMatter(text string) (map[string]string, error) {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
	if strings.TrimRight(lines[0], " ") != "---" {
		return nil, errors.New("it does not begin with a line ---, name and description, and another line ---")
	}
	members, blocks, name := map[string]string{}, map[string]bool{}, ""
	for _, line := range lines[1:] {
		switch {
		case strings.TrimRight(line, " ") == "---":
			for key, v := range members {
				if !blocks[key] {
					members[key] = unquote(v)
				}
			}
			return members, nil
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			members[name] = strings.TrimSpace(members[name] + " " + strings.TrimSpace(line))
		default:
			key, v, found := strings.Cut(line, ":")
			if !found {
				continue
			}
			if v = strings.TrimSpace(v); v != "" && strings.Trim(v, ">|-+") == "" {
				v, blocks[key] = "", true // a block: the text follows without quotes
			}
			name, members[key] = key, v
		}
	}
	return nil, errors.New("the line --- after name and description is missing")
}

// unquote returns a text of YAML without quotes or comment.
func unquote(v string) string {
	var text string
	switch {
	case strings.HasPrefix(v, `"`):
		if json.NewDecoder(strings.NewReader(v)).Decode(&text) == nil { // escapes are those of JSON, and more
			return text
		}
	case strings.HasPrefix(v, "'"):
		before, after, _ := strings.Cut(strings.ReplaceAll(v[1:], "''", "\x00"), "'")
		if after == "" || strings.HasPrefix(strings.TrimSpace(after), "#") {
			return strings.ReplaceAll(before, "\x00", "'")
		}
	}
	v, _, _ = strings.Cut(v, " #")
	return strings.TrimSpace(v)
}

// describeSkills lists skills in the instructions of an agent.
func describeSkills(skills []skill) string {
	if len(skills) == 0 {
		return ""
	}
	text := "Skills are instructions for certain tasks. Before such a task, read its skill with " + skillRead + ":"
	for _, s := range skills {
		text += "\n- " + s.name + ": " + s.description
	}
	return text
}

// readSkill is the tool that reads a file of a skill.
func readSkill(skills []skill, arguments map[string]any) (string, error) {
	name, _ := arguments["name"].(string)
	file, _ := arguments["path"].(string)
	if file == "" {
		file = skillFile
	}
	names := make([]string, len(skills))
	for i, s := range skills {
		names[i] = s.name
		if s.name != name {
			continue
		}
		root, err := confine.Open(s.dir)
		if err != nil {
			return "", err
		}
		defer func() { _ = root.Close() }() // nothing was written
		data, err := root.ReadFile(file, maxSkillFile)
		if err != nil {
			return "", err
		}
		if !utf8.Valid(data) {
			return "", tea.Errorf(tea.ValidationError, "%s of the skill %s is not a text", file, name)
		}
		return string(data), nil
	}
	return "", tea.Errorf(tea.NotFound, "there is no skill %q; the skills are: %s%s", name, strings.Join(names, ", "), diag.Ending(name, names))
}
