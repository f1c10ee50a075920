package teacmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// The scripts for bash and zsh set at to the command that the words before the
// cursor name, and flag to the flag that needs a value.

const bashHead = `# bash completion for tea; load it with: source <(tea completion bash)
_tea() {
    local cur=${COMP_WORDS[COMP_CWORD]} at="" flag="" word words=""
    [[ $cur == "=" ]] && cur=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == "=" ]] && continue
        if [[ $flag ]]; then flag=""; continue; fi
        case "$word" in
        %s) flag=$word; continue ;;
        -*) continue ;;
        esac
        case "${at:+$at }$word" in
`

func bashCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	fmt.Fprintf(&b, bashHead, strings.Join(valueFlags(all), "|"))
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "        %q) at=%q ;;\n", c.path, c.path)
	}
	b.WriteString("        esac\n    done\n    if [[ $flag ]]; then\n        case \"$at $flag\" in\n        \"\") ;;\n")
	eachEnum(all, func(words, values []string) {
		fmt.Fprintf(&b, "        %s) words=%q ;;\n", quotedPatterns(words), strings.Join(values, " "))
	})
	b.WriteString("        esac\n    elif [[ $cur == -* ]]; then\n        case \"$at\" in\n")
	for _, c := range all {
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.Name)
		}
		fmt.Fprintf(&b, "        %q) words=%q ;;\n", c.path, strings.Join(flags, " "))
	}
	b.WriteString("        esac\n    else\n        case \"$at\" in\n        \"-\") ;;\n")
	for _, c := range all {
		words := strings.Join(c.arguments(), " ")
		if c.source != "" {
			words += fmt.Sprintf("$(tea %s %s \"${COMP_WORDS[@]:1}\" 2>/dev/null)", completer, c.source)
		}
		if words != "" {
			fmt.Fprintf(&b, "        %q) words=\"%s\" ;;\n", c.path, words)
		}
	}
	b.WriteString("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _tea tea\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// eachEnum calls give for each flag with a fixed set of values; words are the
// command and the flag.
func eachEnum(all []completed, give func(words, values []string)) {
	for _, c := range all {
		for _, f := range c.flags {
			if values := wordsOf(f); takesValue(f) && values != nil {
				var words []string
				for _, word := range flagWords(f) {
					words = append(words, c.path+" "+word)
				}
				give(words, values)
			}
		}
	}
}

func quotedPatterns(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	return strings.Join(quoted, "|")
}

const zshHead = `#compdef tea
# zsh completion for tea; put it as _tea into a directory of $fpath
_tea() {
    local at="" flag="" word
    local -a items
    for word in ${words[2,CURRENT-1]}; do
        if [[ -n $flag ]]; then flag=""; continue; fi
        case "$word" in
        %s) flag=$word; continue ;;
        -*) continue ;;
        esac
        case "${at:+$at }$word" in
`

const zshTail = `        esac
        if (( $#items )); then _describe 'argument' items; else _files; fi
    fi
}
if [[ ${funcstack[1]} == _tea ]]; then _tea "$@"; else compdef _tea tea; fi
`

func zshCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	fmt.Fprintf(&b, zshHead, strings.Join(valueFlags(all), "|"))
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "        %s) at=%s ;;\n", shellQuote(c.path), shellQuote(c.path))
	}
	b.WriteString("        esac\n    done\n    if [[ -n $flag ]]; then\n        case \"$at $flag\" in\n")
	eachEnum(all, func(words, values []string) {
		fmt.Fprintf(&b, "        %s) compadd -- %s ;;\n", quotedPatterns(words), strings.Join(values, " "))
	})
	b.WriteString("        *) _files ;;\n        esac\n    elif [[ ${words[CURRENT]} == -* ]]; then\n        case \"$at\" in\n")
	for _, c := range all {
		var items []string
		for _, f := range c.flags {
			items = append(items, zshItem("--"+f.Name, f.Help))
		}
		fmt.Fprintf(&b, "        %s) items=(%s) ;;\n", shellQuote(c.path), strings.Join(items, " "))
	}
	b.WriteString("        esac\n        _describe 'flag' items\n    else\n        case \"$at\" in\n")
	for _, c := range all {
		var items []string
		for _, n := range c.commands {
			items = append(items, zshItem(n.Name, n.Help))
		}
		for _, value := range c.values {
			items = append(items, zshItem(value, ""))
		}
		if c.source != "" {
			items = append(items, fmt.Sprintf("${(f)\"$(tea %s %s ${words[2,-1]} 2>/dev/null)\"}", completer, c.source))
		}
		fmt.Fprintf(&b, "        %s) items=(%s) ;;\n", shellQuote(c.path), strings.Join(items, " "))
	}
	b.WriteString(zshTail)
	_, err := io.WriteString(w, b.String())
	return err
}

// zshItem returns a word with its description.
func zshItem(word, help string) string {
	word = strings.ReplaceAll(word, ":", `\:`)
	if help != "" {
		word += ":" + help
	}
	return shellQuote(word)
}

func fishCompletion(w io.Writer, all []completed) error {
	var b strings.Builder
	b.WriteString("# fish completion for tea; put it as tea.fish into ~/.config/fish/completions\n")
	for _, c := range all {
		here := fishCondition(c)
		for _, n := range c.commands {
			fmt.Fprintf(&b, "complete -c tea -n %s -f -a %s -d %s\n", shellQuote(here), n.Name, shellQuote(n.Help))
		}
		if len(c.values) > 0 {
			fmt.Fprintf(&b, "complete -c tea -n %s -f -a %s\n", shellQuote(here), shellQuote(strings.Join(c.values, " ")))
		}
		if c.source != "" {
			ask := fmt.Sprintf("(tea %s %s (commandline -opc)[2..] 2>/dev/null)", completer, c.source)
			fmt.Fprintf(&b, "complete -c tea -n %s -f -a %s\n", shellQuote(here), shellQuote(ask))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c tea -n %s -l %s%s -d %s\n", shellQuote(here), f.Name, fishFlag(f), shellQuote(f.Help))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// fishCondition returns a condition that is true if the words so far name a
// command and none of its subcommands.
func fishCondition(c completed) string {
	if c.path == "" {
		return "__fish_use_subcommand"
	}
	var conditions []string
	for word := range strings.FieldsSeq(c.path) {
		conditions = append(conditions, "__fish_seen_subcommand_from "+word)
	}
	if len(c.commands) > 0 {
		var below []string
		for _, n := range c.commands {
			below = append(below, n.Name)
		}
		conditions = append(conditions, "not __fish_seen_subcommand_from "+strings.Join(below, " "))
	}
	return strings.Join(conditions, "; and ")
}

// fishFlag returns what follows a flag: nothing, a file or one of a few values.
func fishFlag(f *kong.Flag) string {
	out := ""
	if f.Short != 0 {
		out = fmt.Sprintf(" -s %c", f.Short)
	}
	switch values := wordsOf(f); {
	case !takesValue(f):
	case values != nil:
		out += " -x -a " + shellQuote(strings.Join(values, " "))
	default:
		out += " -r"
	}
	return out
}
